// SPDX-License-Identifier: GPL-2.0
//! Switches that stay: `/etc/hiops/switches`, in which `set --save` keeps them, and from which
//! udev's rule has `apply` set them whenever a disk of hiops comes.
//!
//! A line is `WHOSE... NAME VALUE`; `#` begins a comment. WHOSE is one or more of `serial=NUMBER`,
//! `nsid=N`, `port_no=N`, `address=ADDRESS`, `disk=NAME`, all of which have to fit. In NUMBER a
//! `?` stands for any one byte, as in the list of devices.

use crate::devices::{written, Wrong};
use crate::etc::Lines;
use crate::failure::Failure;
use crate::identity;
use crate::machine::{controllers, served_disk, served_names, Controller, Kind};
use crate::out::Out;
use crate::root::Root;
use crate::show;
use crate::switches;
use serde::Serialize;

/// Where they are.
pub(crate) const FILE: &str = "/etc/hiops/switches";

const HEAD: &str = "# Switches of disks, by hiopsctl set --save; set whenever the disk comes.";
const FORM: &str = "a line is serial=NUMBER [nsid=N] NAME VALUE, and # begins a comment";

/// A switch that is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Saved {
    pub(crate) line: usize,
    /// Whose it is: names and values, all of which have to fit.
    whose: Vec<(String, String)>,
    pub(crate) name: String,
    pub(crate) value: String,
}

/// What was set, or could not be.
#[derive(Serialize)]
struct Applied {
    disk: String,
    name: String,
    value: String,
    /// None: it is what it was.
    before: Option<String>,
}

/// All that was set.
#[derive(Serialize)]
struct AllApplied {
    applied: Vec<Applied>,
}

/// What of a disk is kept no more.
#[derive(Serialize)]
struct Forgotten {
    disk: String,
    names: Vec<String>,
}

/// Reads the file's text: what is well formed, and what is wrong with other lines.
pub(crate) fn parse(text: &str) -> (Vec<Saved>, Vec<Wrong>) {
    let (mut all, mut wrongs) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default();
        let mut words = text.split_whitespace().peekable();
        if words.peek().is_none() {
            continue;
        }
        let mut whose = Vec::new();
        while let Some((key, value)) = words.peek().and_then(|word| word.split_once('=')) {
            whose.push((key.to_string(), value.to_string()));
            words.next();
        }
        let known = |(key, _): &(String, String)| {
            matches!(&**key, "serial" | "nsid" | "port_no" | "address" | "disk")
        };
        let name = words.next().map(str::to_string);
        let value: Vec<&str> = words.collect();
        match name {
            Some(name) if !whose.is_empty() && !value.is_empty() && whose.iter().all(known) => {
                all.push(Saved {
                    line,
                    whose,
                    name,
                    value: value.join(" "),
                });
            }
            _ => {
                let what = format!("'{}' is not understood", text.trim());
                wrongs.push(Wrong::new(line, what, FORM));
            }
        }
    }
    (all, wrongs)
}

/// All of the machine's.
pub(crate) fn all(root: &Root) -> (Vec<Saved>, Vec<Wrong>) {
    let bytes = root.bytes(FILE).unwrap_or_default();
    parse(&identity::ascii(&bytes))
}

/// By what a disk is known for good: its serial number where there is one, else where it is.
fn whose(root: &Root, disk: &str, controller: &Controller) -> Vec<(String, String)> {
    let mut whose = Vec::new();
    let mut is = |key: &str, value: String| whose.push((key.to_string(), value));
    if controller.kind == Kind::Ram {
        is("disk", disk.to_string());
        return whose;
    }
    let own = controller.disks.iter().find(|one| one.name == disk);
    let serial = own.and_then(|one| one.serial.as_deref());
    match serial {
        Some(serial) => is("serial", written(serial)),
        None => is("address", controller.address.clone()),
    }
    let place: &[&str] = match serial {
        Some(_) => &["nsid"],
        None => &["nsid", "port_no"],
    };
    for key in place {
        if let Some(value) = root.word(&format!("/sys/block/{disk}/{key}")) {
            is(key, value);
        }
    }
    whose
}

impl Saved {
    /// Whether it is that disk's.
    pub(crate) fn fits(&self, root: &Root, disk: &str, controller: &Controller) -> bool {
        let fits = |(key, value): &(String, String)| match key.as_str() {
            "serial" => {
                let own = controller.disks.iter().find(|one| one.name == disk);
                let serial = own.and_then(|one| one.serial.as_deref());
                serial.is_some_and(|serial| identity::is_meant(value, serial))
            }
            "address" => controller.address == *value,
            "disk" => disk == value,
            key => root.word(&format!("/sys/block/{disk}/{key}")).as_ref() == Some(value),
        };
        self.whose.iter().all(fits)
    }

    fn text(&self) -> String {
        let whose = self.whose.iter();
        let whose: Vec<String> = whose.map(|(key, value)| format!("{key}={value}")).collect();
        format!("{} {} {}", whose.join(" "), self.name, self.value)
    }
}

/// The controller of a disk that hiops serves.
fn controller_of(root: &Root, disk: &str) -> Result<Controller, Failure> {
    let mut all = controllers(root).into_iter();
    let found = all.find(|it| it.served().any(|one| one.name == disk));
    found.ok_or_else(|| {
        Failure::new(
            format!("{disk} has gone"),
            "hiopsctl list shows what is there",
        )
    })
}

/// Keeps `value` for `name` of `disk`, in place of what is kept for it; `None`: nothing any more.
/// Whether that is another than before.
pub(crate) fn keep(
    root: &Root,
    disk: &str,
    name: &str,
    value: Option<&str>,
) -> Result<bool, Failure> {
    let controller = controller_of(root, disk)?;
    let mut lines = Lines::read(root, FILE)?;
    let is_own = |one: &Saved| one.name == name && one.fits(root, disk, &controller);
    let (old, _) = parse(&lines.texts().join("\n"));
    let own: Vec<&Saved> = old.iter().filter(|one| is_own(one)).collect();
    let same = match (value, &own[..]) {
        (Some(value), [only]) => only.value == value,
        (None, []) => true,
        _ => false,
    };
    if same {
        return Ok(false);
    }
    lines.remove(|text| parse(text).0.iter().any(is_own));
    if let Some(value) = value {
        if lines.is_empty() {
            lines.push(HEAD);
        }
        let saved = Saved {
            line: 0,
            whose: whose(root, disk, &controller),
            name: name.to_string(),
            value: value.to_string(),
        };
        lines.push(saved.text());
    }
    lines.write(root, FILE)?;
    Ok(true)
}

/// Forgets what is kept of `disk`: of `name`, or all.
pub(crate) fn forget(
    root: &Root,
    out: &Out,
    disk: &str,
    name: Option<&str>,
) -> Result<(), Failure> {
    let disk = served_disk(root, disk)?;
    let controller = controller_of(root, &disk)?;
    let own = all(root).0.into_iter();
    let own = own.filter(|one| one.fits(root, &disk, &controller));
    let own = own.filter(|one| name.is_none_or(|name| one.name == name));
    let mut names: Vec<String> = own.map(|one| one.name).collect();
    names.dedup();
    for name in &names {
        keep(root, &disk, name, None)?;
    }
    out.show(
        &Forgotten { disk, names },
        |Forgotten { disk, names }| match names[..] {
            [] => format!("{disk}: nothing of that is kept in {FILE}\n"),
            _ => format!(
                "{disk}: {} kept no more; it stays as it is now\n",
                names.join(", ")
            ),
        },
    )
}

/// Sets what is kept of `disks`, or of all that hiops serves. One that can't be set does not keep
/// the others back.
pub(crate) fn apply(root: &Root, out: &Out, disks: &[String]) -> Result<(), Failure> {
    let disks: Vec<String> = match disks {
        [] => served_names(root),
        some => some
            .iter()
            .map(|text| served_disk(root, text))
            .collect::<Result<_, _>>()?,
    };
    let (kept, _) = all(root);
    let (mut done, mut failed) = (Vec::new(), None);
    for disk in &disks {
        let controller = controller_of(root, disk)?;
        for one in kept.iter().filter(|one| one.fits(root, disk, &controller)) {
            let before = switches::value(root, disk, &one.name);
            if before.as_ref() == Some(&one.value) {
                continue;
            }
            match switches::write(root, disk, &one.name, &one.value) {
                Ok(()) => done.push(Applied {
                    disk: disk.clone(),
                    name: one.name.clone(),
                    value: one.value.clone(),
                    before,
                }),
                Err(failure) => {
                    // The last one is what the command ends with.
                    if let Some(other) = failed.replace(failure) {
                        out.fail(&other);
                    }
                }
            }
        }
    }
    out.show(&AllApplied { applied: done }, |done| {
        let line = |one: &Applied| {
            let before = one.before.as_deref().unwrap_or("?");
            format!("{}: {} is {} (was {before})", one.disk, one.name, one.value)
        };
        show::lines(done.applied.iter().map(line))
    })?;
    failed.map_or(Ok(()), Err)
}

/// Switches that are not as they are kept: the disk, what is wrong, and the way out.
pub(crate) fn differing(root: &Root) -> Vec<(String, String)> {
    let (kept, wrongs) = all(root);
    let mut found: Vec<(String, String)> = wrongs
        .into_iter()
        .map(|it| (format!("{FILE}:{}: {}", it.line, it.what), it.way_out))
        .collect();
    for controller in controllers(root) {
        for disk in controller.served() {
            let disk = &disk.name;
            for one in kept.iter().filter(|one| one.fits(root, disk, &controller)) {
                let is = switches::value(root, disk, &one.name);
                if is.as_ref() == Some(&one.value) {
                    continue;
                }
                let is = is.unwrap_or_else(|| "not there".into());
                found.push((
                    format!(
                        "{} of {disk} is {is}, not {} as {FILE}:{} says",
                        one.name, one.value, one.line
                    ),
                    format!(
                        "hiopsctl apply {disk}, or hiopsctl forget {disk} {}",
                        one.name
                    ),
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_have_blanks() {
        let (all, wrongs) = parse("\n# x\nserial=S nsid=1 cache_type write back # so\n");
        assert_eq!(wrongs, []);
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (one.line, &*one.name, &*one.value),
            (3, "cache_type", "write back")
        );
        assert_eq!(one.text(), "serial=S nsid=1 cache_type write back");
    }

    #[test]
    fn each_wrong_line_is_named() {
        for text in [
            "mode poll",
            "serial=S mode",
            "serial=S",
            "model=x mode poll",
            "x",
        ] {
            let (all, wrongs) = parse(text);
            assert_eq!((all.len(), wrongs.len()), (0, 1), "{text}");
        }
    }
}
