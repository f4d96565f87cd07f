// SPDX-License-Identifier: GPL-2.0
//! What drives call themselves. They write there what they like, and the kernel shows it byte for
//! byte: blanks, control characters, bytes that are no UTF-8.

/// `bytes` as printable ASCII; each that is none is a `?`.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let shown = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    };
    bytes.iter().map(shown).collect()
}

/// A list's bytes as ASCII, its lines as they are; each byte that is none is a `?`, which is how a
/// list may write it.
pub(crate) fn ascii(bytes: &[u8]) -> String {
    let shown = |byte: &u8| match byte.is_ascii() {
        true => char::from(*byte),
        false => '?',
    };
    bytes.iter().map(shown).collect()
}

/// A name as it is shown and compared: without the blanks around it; `None`: there is none.
pub(crate) fn shown(bytes: &[u8]) -> Option<String> {
    Some(printable(bare(bytes)?))
}

/// All forms in which the name may be met with: as it is shown; with what is no text replaced; as
/// the kernel's log writes it; and in names of /dev/disk.
pub(crate) fn forms(bytes: &[u8]) -> Vec<String> {
    let Some(name) = bare(bytes) else {
        return Vec::new();
    };
    let escape = |byte: &u8| match byte {
        b'\\' => "\\x5c".to_string(),
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    let replaced = String::from_utf8_lossy(name).into_owned();
    let linked = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "#+-.:=@_".contains(c) => c,
        c if c.is_ascii() || c == char::REPLACEMENT_CHARACTER => '_',
        c => c,
    };
    let mut all = vec![
        printable(name),
        name.iter().map(escape).collect(),
        replaced.chars().map(linked).collect(),
        replaced,
    ];
    all.dedup();
    all
}

/// Up to a zero, without the blanks around it; `None`: nothing is left.
fn bare(bytes: &[u8]) -> Option<&[u8]> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n');
    let bytes = bytes.split(|byte| *byte == 0).next()?;
    let from = bytes.iter().position(|byte| !blank(byte))?;
    let to = bytes.iter().rposition(|byte| !blank(byte))?;
    bytes.get(from..=to)
}

/// Whether a list that says `written` means the drive that is shown as `shown`: a `?` stands for
/// any one byte, as `hiops-bind-all` has it.
pub(crate) fn is_meant(written: &str, shown: &str) -> bool {
    let (written, shown) = (written.as_bytes(), shown.as_bytes());
    let mut pairs = written.iter().zip(shown);
    written.len() == shown.len() && pairs.all(|(one, other)| *one == b'?' || one == other)
}

/// Whether `link`, a name in /dev/disk, has the name that is shown as `shown` in it. udev replaces
/// what is odd, one way or another.
pub(crate) fn is_named(link: &str, shown: &str) -> bool {
    let plain = |text: &str| {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        format!(" {} ", words.join(" "))
    };
    let name = plain(shown);
    !name.trim().is_empty() && plain(link).contains(name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_shown_as_such() {
        assert_eq!(shown(b"  S1 2\t\xe9\x1b x \n").unwrap(), "S1 2??? x");
        for none in [&b""[..], b" \t \n", b"\0abc"] {
            assert_eq!(shown(none), None);
            assert!(forms(none).is_empty());
        }
        assert_eq!(ascii(b"a\tb\r\nc\xc3\xa9"), "a\tb\r\nc??");
    }

    #[test]
    fn it_is_known_in_each_form() {
        assert_eq!(forms(b"S1\n"), ["S1"]);
        assert_eq!(
            forms(b" a\xe9 \"\\ \n"),
            ["a? \"\\", "a\\xe9 \"\\x5c", "a____", "a\u{fffd} \"\\"]
        );
    }

    #[test]
    fn a_question_mark_is_any_byte() {
        assert!(is_meant("S1", "S1") && is_meant("?1", "S1") && is_meant("a?b", "a b"));
        assert!(!is_meant("S", "S1") && !is_meant("S1?", "S1") && !is_meant("*", "S1"));
        assert!(!is_meant("S1", "S?") && is_meant("S?", "S?"));
    }

    #[test]
    fn links_have_odd_names_in_many_ways() {
        for link in ["nvme-M_S1__2_1", "ata-S1_2", "scsi-SATA_M_S1___2"] {
            assert!(is_named(link, "S1 ?2"), "{link}");
        }
        assert!(!is_named("nvme-M_1", "??"));
        assert!(!is_named("nvme-M_2_S1", "S1 2"));
    }
}
