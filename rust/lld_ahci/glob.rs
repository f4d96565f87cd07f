// SPDX-License-Identifier: GPL-2.0
//! Patterns of models and of firmware revisions: `*` is any text, `?` any character, `[a-c5]` one
//! of some, everything else itself. A pattern is all of the text.

/// Whether `text` is what `pattern` says. An unclosed `[` is nobody's pattern: it matches nothing.
///
/// Bounded: each `*` begins anew only at the last one, so the steps are at most the product of the
/// two lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut rest, mut left) = (pattern, text);
    // The pattern after the last `*`, and the text that it was tried on last.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        let step = match (rest.split_first(), left.split_first()) {
            (None, None) => return true,
            (Some((b'*', after)), _) => {
                star = Some((after, left));
                Some((after, left))
            }
            (Some(_), Some((letter, tail))) => one(rest, *letter).map(|after| (after, tail)),
            _ => None,
        };
        (rest, left) = match (step, star) {
            (Some(step), _) => step,
            // The last `*` takes one more letter.
            (None, Some((after, [_, tail @ ..]))) => {
                star = Some((after, tail));
                (after, tail)
            }
            _ => return false,
        };
    }
}

/// What follows the first element of `pattern`, if that is `letter`.
fn one(pattern: &[u8], letter: u8) -> Option<&[u8]> {
    let (first, after) = pattern.split_first()?;
    match first {
        b'?' => Some(after),
        b'[' => {
            let end = after.iter().position(|byte| *byte == b']')?;
            let (set, after) = after.split_at_checked(end)?;
            let (_, after) = after.split_first()?;
            is_one_of(set, letter).then_some(after)
        }
        first => (*first == letter).then_some(after),
    }
}

/// Whether `letter` is in `set`, of letters and ranges.
fn is_one_of(set: &[u8], letter: u8) -> bool {
    let mut left = set;
    loop {
        left = match left {
            [] => return false,
            [from, b'-', to, ..] if (*from..=*to).contains(&letter) => return true,
            [_, b'-', _, rest @ ..] => rest,
            [only, rest @ ..] => {
                if *only == letter {
                    return true;
                }
                rest
            }
        };
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn is(pattern: &str, text: &str) -> bool {
        matches(pattern.as_bytes(), text.as_bytes())
    }

    #[test]
    fn a_pattern_is_all_of_the_text() {
        assert!(is("", "") && is("ab", "ab"));
        assert!(!is("ab", "abc") && !is("ab", "a") && !is("", "a") && !is("a", ""));
    }

    #[test]
    fn stars_are_any_text_also_none() {
        assert!(is("*", "") && is("*", "abc") && is("a*", "a") && is("*c", "abc"));
        assert!(is("Crucial_CT*M500*", "Crucial_CT240M500SSD1"));
        assert!(!is("Crucial_CT*M500*", "Crucial_CT240M550SSD1"));
        // The last star begins anew.
        assert!(is("*aab", "aaaab") && is("a*b*c", "abbcbc"));
        assert!(!is("*aab", "aaaa"));
    }

    #[test]
    fn sets_have_letters_and_ranges() {
        assert!(is("SD1[5-9]", "SD15") && is("SD1[5-9]", "SD19") && !is("SD1[5-9]", "SD14"));
        assert!(is("ST[1248][0248]0[FH]*", "ST480HM000"));
        assert!(!is("ST[1248][0248]0[FH]*", "ST480GM000"));
        assert!(is("[a-c-]", "-") && is("[a-]", "-"));
        assert!(!is("[ab", "a") && !is("[]", "a") && !is("?", ""));
    }

    proptest::proptest! {
        /// Whatever it is, it ends, and a text is its own pattern.
        #[test]
        fn any_text_is_looked_at(pattern in "[a-c*?\\[\\]-]{0,12}", text in "[a-c]{0,24}") {
            let _ = is(&pattern, &text);
            assert!(is(&text, &text));
            let any = std::format!("*{text}*");
            assert!(is(&any, &text));
        }
    }
}
