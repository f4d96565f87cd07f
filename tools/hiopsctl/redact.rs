// SPDX-License-Identifier: GPL-2.0
//! What a report must not tell: each such text becomes a word like `<serial-1>`, the same one
//! wherever it stands, so that lines can still be compared.
//!
//! Two kinds are found: what this machine is known to have (serial numbers, host names), wherever
//! it stands; and what has a form of its own (UUIDs, addresses, `password=`), of any machine.

use crate::failure::Failure;
use regex::{Captures, Match, Regex, RegexBuilder};
use std::collections::HashMap;
use std::net::Ipv6Addr;

/// A text that is known to be secret, and what it is.
pub(crate) type Known = (&'static str, String);

/// A known text that is shorter counts only where it stands alone: it may be part of any word.
const SHORTEST: usize = 5;

/// What was replaced already.
const DONE: (&str, &str) = ("done", r"<[a-z]+-[0-9]+>");

/// Forms, the most special first: what matches first at a place is taken. A form with a group named
/// `_kept` keeps that.
const FORMS: &[(&str, &str)] = &[
    DONE,
    ("nqn", r#"nqn\.[0-9]{4}-[0-9]{2}\.[^\s"',;]+"#),
    ("wwid", r"\b(?:eui|naa|t10|uuid)\.[0-9a-f][0-9a-f-]{7,}"),
    (
        "wwid",
        r"\bnvme\.[0-9a-f]{4}-[0-9a-f]+-[0-9a-f]+-[0-9a-f]{8}\b",
    ),
    ("wwid", r"\bhiops\.[0-9a-f]*-[0-9a-f]*-[0-9a-f]{8}\b"),
    ("wwid", r"\b0x5[0-9a-f]{15}\b"),
    (
        "uuid",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    ("id", r"\b[0-9a-f]{32}\b"),
    (
        "mac",
        r"\b[0-9a-f]{2}(?:(?::[0-9a-f]{2}){5,}|(?:-[0-9a-f]{2}){5})\b",
    ),
    ("mail", r"\b[a-z0-9._+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+"),
    ("login", r"(?<login_kept>://)[^/\s@]+@"),
    (
        "value",
        concat!(
            r"(?<value_kept>[a-z0-9_.-]*",
            r"(?:key|pass|passwd|password|passphrase|pwd|secret|token|cred|credentials?|auth|psk)",
            r#"s?[0-9]*(?:[_.-][a-z0-9_.-]*)?["']?\s*(?:=|:\s)\s*)"#,
            r#"(?:"[^"]*"|'[^']*'|[^\s,;]+)"#
        ),
    ),
    (
        "serial",
        concat!(
            r#"(?<serial_kept>\b(?:serial(?:[ _-]?(?:number|no))?|sn)["']?\s*[=:]\s*)"#,
            r#"(?:"[^"]*"|[^\s,;]+)"#
        ),
    ),
    (
        "ip",
        r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b",
    ),
    ("six", r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}"),
];

/// Replaces, and remembers by what.
#[derive(Debug)]
pub(crate) struct Redactor {
    forms: Finder,
    known: Finder,
    tokens: HashMap<(String, String), String>,
    count: HashMap<String, usize>,
}

/// Several expressions in one: group `gN` is the one of the Nth kind.
#[derive(Debug)]
struct Finder {
    kinds: Vec<&'static str>,
    all: Regex,
}

impl Finder {
    /// # Errors
    /// One is no expression: a bug.
    fn new(parts: impl Iterator<Item = (&'static str, String)>) -> Result<Self, Failure> {
        let (mut kinds, mut groups) = (Vec::new(), Vec::new());
        for (at, (kind, part)) in parts.enumerate() {
            kinds.push(kind);
            groups.push(format!("(?<g{at}>{part})"));
        }
        let mut all = RegexBuilder::new(&groups.join("|"));
        let all = all.case_insensitive(true).build();
        let all = all.map_err(|error| Failure::new(error.to_string(), "this is a bug"))?;
        Ok(Self { kinds, all })
    }

    /// What kind of thing was found.
    fn kind(&self, found: &Captures<'_>) -> &'static str {
        let is = |at: &usize| found.name(&format!("g{at}")).is_some();
        let at = (0..self.kinds.len()).find(is).unwrap_or_default();
        self.kinds.get(at).copied().unwrap_or_default()
    }
}

impl Redactor {
    /// One that knows `secrets`.
    ///
    /// # Errors
    /// A bug.
    pub(crate) fn new(secrets: &[Known]) -> Result<Self, Failure> {
        let known = secrets
            .iter()
            .map(|(kind, text)| (*kind, text.trim().to_lowercase()));
        let mut known: Vec<Known> = known.filter(|(_, text)| text.len() > 1).collect();
        // A text that contains another comes first.
        known.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
        let known = known.into_iter();
        let known = known.map(|(kind, text)| (kind, regex::escape(&text)));
        let done = (DONE.0, DONE.1.to_string());
        let forms = FORMS.iter().map(|(kind, form)| (*kind, form.to_string()));
        Ok(Self {
            forms: Finder::new(forms)?,
            known: Finder::new(std::iter::once(done).chain(known))?,
            tokens: HashMap::new(),
            count: HashMap::new(),
        })
    }

    /// The word for `secret`, which is of `kind`.
    pub(crate) fn token(&mut self, kind: &str, secret: &str) -> String {
        let plain = secret.trim_matches(['"', '\'']).to_lowercase();
        let of = (kind.to_string(), plain);
        if let Some(token) = self.tokens.get(&of) {
            return token.clone();
        }
        let count = self.count.entry(kind.to_string()).or_default();
        *count = count.saturating_add(1);
        let token = format!("<{kind}-{count}>");
        self.tokens.insert(of, token.clone());
        token
    }

    /// `text` without secrets. Forms come first: a short name that is known, too, must not break
    /// one into pieces that nobody recognizes.
    pub(crate) fn clean(&mut self, text: &str) -> String {
        let forms = self.forms.all.clone();
        let text = replace(&forms, text, |found, text| self.of_form(found, text));
        let known = self.known.all.clone();
        replace(&known, &text, |found, text| self.of_known(found, text))
    }

    /// The words for a form; none: it is not one, after all.
    fn of_form(&mut self, found: &Captures<'_>, text: &str) -> Option<String> {
        let kind = self.forms.kind(found);
        let secret = found.get(0)?;
        match kind {
            "done" => Some(secret.as_str().to_string()),
            "six" => {
                let colon = |c: Option<char>| c == Some(':');
                let (before, after) = around(secret, text);
                let apart = is_alone(secret, text) && !colon(before) && !colon(after);
                let address = apart && secret.as_str().parse::<Ipv6Addr>().is_ok();
                (address && secret.as_str() != "::").then(|| self.token("ip", secret.as_str()))
            }
            _ => {
                let kept = found
                    .name(&format!("{kind}_kept"))
                    .map_or("", |kept| kept.as_str());
                let secret = secret.as_str().strip_prefix(kept)?;
                // The command line's values are replaced before.
                let done = secret.starts_with('<') && secret.ends_with('>');
                let word = if done {
                    secret.to_string()
                } else {
                    self.token(kind, secret)
                };
                Some(format!("{kept}{word}"))
            }
        }
    }

    /// The word for a text that is known; none: it is a part of another word.
    fn of_known(&mut self, found: &Captures<'_>, text: &str) -> Option<String> {
        let kind = self.known.kind(found);
        let secret = found.get(0)?;
        if kind == "done" {
            return Some(secret.as_str().to_string());
        }
        let anywhere = kind != "host" && secret.len() >= SHORTEST;
        (anywhere || is_alone(secret, text)).then(|| self.token(kind, secret.as_str()))
    }
}

/// The characters before and after what was found.
fn around(found: Match<'_>, text: &str) -> (Option<char>, Option<char>) {
    let before = text.get(..found.start()).unwrap_or_default();
    let after = text.get(found.end()..).unwrap_or_default();
    (before.chars().next_back(), after.chars().next())
}

/// Whether it is not a part of a word.
fn is_alone(found: Match<'_>, text: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let (before, after) = around(found, text);
    !inside(before) && !inside(after)
}

/// `text` with all that `finder` finds replaced by what `word` says; where that is nothing the
/// search goes on behind the next character.
fn replace(
    finder: &Regex,
    text: &str,
    mut word: impl FnMut(&Captures<'_>, &str) -> Option<String>,
) -> String {
    let mut cleaned = String::new();
    let (mut copied, mut from) = (0, 0);
    while let Some(found) = finder.captures_at(text, from) {
        let Some(whole) = found.get(0).filter(|whole| !whole.is_empty()) else {
            break;
        };
        if let Some(word) = word(&found, text) {
            cleaned.push_str(text.get(copied..whole.start()).unwrap_or_default());
            cleaned.push_str(&word);
            (copied, from) = (whole.end(), whole.end());
        } else {
            let first = whole.as_str().chars().next().map_or(1, char::len_utf8);
            from = whole.start().saturating_add(first);
        }
    }
    cleaned.push_str(text.get(copied..).unwrap_or_default());
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(known: &[Known], text: &str) -> String {
        Redactor::new(known).unwrap().clean(text)
    }

    #[test]
    fn forms_are_found() {
        for (text, is) in [
            ("x 10.0.0.255:80 y 10.0.0.255", "x <ip-1>:80 y <ip-1>"),
            ("256.1.1.1 is none", "256.1.1.1 is none"),
            ("fe80::1 and 2001:db8:0:0:0:0:0:7", "<ip-1> and <ip-2>"),
            ("de:ad:be:ef:00:01 DE-AD-BE-EF-00-01", "<mac-1> <mac-2>"),
            (
                "nqn.2014-08.org.nvmexpress:uuid:1b4e28ba-2fa1-11d2-883f-0016d3cca427",
                "<nqn-1>",
            ),
            ("UUID=1B4E28BA-2fa1-11d2-883f-0016d3cca427", "UUID=<uuid-1>"),
            ("eui.0025385b71b0f1a2", "<wwid-1>"),
            (
                "naa.5000c500a1b2c3d4 0x5000c500a1b2c3d4",
                "<wwid-1> <wwid-2>",
            ),
            ("hiops.53455249-4d4f44-00000001", "<wwid-1>"),
            ("nvme.8086-50484b-494e54-00000001", "<wwid-1>"),
            ("0123456789abcdef0123456789abcdef", "<id-1>"),
            (
                "serial=S3 Serial Number: S3, SN: X",
                "serial=<serial-1> Serial Number: <serial-1>, SN: <serial-2>",
            ),
            (
                "wifi_psk=hunter2 my.password: 'a b' x",
                "wifi_psk=<value-1> my.password: <value-2> x",
            ),
            (
                "key_file=/a keys: \"b\" k",
                "key_file=<value-1> keys: <value-2> k",
            ),
            ("ftp://me:pw@host/", "ftp://<login-1>host/"),
            ("mail root@db.example.com", "mail <mail-1>"),
        ] {
            let cleaned = clean(&[], text);
            assert!(cleaned.starts_with(is), "{text}: {cleaned}");
        }
    }

    #[test]
    fn what_tells_how_a_machine_is_driven_stays() {
        let text = "[   12.345678] hiops_nvme 0000:01:00.0: 14:02:11 kglue::adapter::recover \
                    queue 3 at 0xffff888012345678 7.3.4-amd64 12:34:56 core::fmt <serial-1> \
                    f::e::d 0000:00:1f.2 nvme_passthru::run author: me, monkey 7";
        assert_eq!(clean(&[], text), text);
    }

    #[test]
    fn what_is_known_is_found_anywhere() {
        let known = [
            ("serial", "S3Z9NB0K".to_string()),
            ("serial", "AB1".into()),
            ("host", "db".into()),
            ("host", "ab".into()),
            ("host", "serial".into()),
            ("host", "db.example.com".into()),
        ];
        let text = "by-id/nvme-Model_s3z9nb0k_1 S3Z9NB0K db.example.com at db; dbx hiops-db AB1 \
                    XAB1 ab:cd:ef:01:02:03 ab::1 serial=S3Z9NB0K";
        assert_eq!(
            clean(&known, text),
            "by-id/nvme-Model_<serial-1>_1 <serial-1> <host-1> at <host-2>; dbx hiops-<host-2> \
             <serial-2> XAB1 <mac-1> <ip-1> <host-3>=<serial-1>"
        );
    }
}
