// SPDX-License-Identifier: GPL-2.0
//! The page that is kept of a measurement: text, JSON and a picture. No serial number is on it, so
//! that it can be shown around.

use super::answer::Answer;
use super::comparison::{Compared, Figure, AGREE};
use super::svg::{bars, Bar, Group};
use crate::failure::Failure;
use crate::show::bytes;
use crate::table::Table;
use serde::Serialize;
use std::fs::{remove_file, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// All that was measured, and on what.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    pub(crate) answer: Answer,
    pub(crate) disk: String,
    pub(crate) controller: String,
    pub(crate) model: Option<String>,
    pub(crate) bytes: u64,
    pub(crate) in_tree_driver: &'static str,
    pub(crate) hiops_driver: &'static str,
    pub(crate) hiopsctl: &'static str,
    pub(crate) kernel: String,
    pub(crate) cpus: usize,
    pub(crate) runs: u32,
    pub(crate) seconds: u32,
    pub(crate) loads: Vec<Compared>,
    /// Loads that can't be run here.
    pub(crate) left_out: Vec<&'static str>,
}

/// The files, which are there before the first run: what can't be written is known then.
#[derive(Debug)]
pub(crate) struct Files {
    all: Vec<(PathBuf, File)>,
    kept: bool,
}

impl Files {
    /// Makes those for `disk` in `folder`.
    ///
    /// # Errors
    /// One is there, or can't be made.
    pub(crate) fn new(folder: &Path, disk: &str) -> Result<Self, Failure> {
        let mut files = Self {
            all: Vec::new(),
            kept: false,
        };
        for kind in ["txt", "json", "svg"] {
            let path = folder.join(format!("hiops-advise-{}.{kind}", disk.replace('!', "-")));
            let made = OpenOptions::new().write(true).create_new(true).open(&path);
            let file = made.map_err(|error| Failure::io(path.display(), &error))?;
            files.all.push((path, file));
        }
        Ok(files)
    }

    /// Writes them; their names.
    ///
    /// # Errors
    /// One can't be written.
    pub(crate) fn keep(mut self, texts: [String; 3]) -> Result<Vec<String>, Failure> {
        for ((path, file), text) in self.all.iter_mut().zip(texts) {
            let written = file.write_all(text.as_bytes());
            written.map_err(|error| Failure::io(path.display(), &error))?;
        }
        self.kept = true;
        Ok(self
            .all
            .iter()
            .map(|(path, _)| path.display().to_string())
            .collect())
    }
}

impl Drop for Files {
    /// Nothing is left of a measurement that came to no end.
    fn drop(&mut self) {
        if !self.kept {
            for (path, _) in &self.all {
                drop(remove_file(path));
            }
        }
    }
}

impl Page {
    /// As people read it.
    pub(crate) fn text(&self) -> String {
        let model = self.model.as_deref().unwrap_or("no model");
        let mut text = format!(
            "{} ({model}, {}, {}), {} CPUs, Linux {}, hiopsctl {}\n",
            self.disk,
            bytes(self.bytes),
            self.controller,
            self.cpus,
            self.kernel,
            self.hiopsctl,
        );
        text.push_str(&format!(
            "4 KiB random reads, O_DIRECT, no scheduler, with {old}, {new}, and {old} again:\n\
             medians of {} runs of {} s. +-: from the least to the most; p99 in us; CPU: time of\n\
             all CPUs an I/O, in us.\n\n",
            self.runs,
            self.seconds,
            old = self.in_tree_driver,
            new = self.hiops_driver,
        ));
        text.push_str(&self.table().text());
        text.push('\n');
        for one in self.loads.iter().filter(|one| !one.agree) {
            text.push_str(&format!(
                "{}: {} before and after differ by {:.1} %, more than {:.0} %\n",
                one.load,
                self.in_tree_driver,
                one.apart * 100.0,
                AGREE * 100.0
            ));
        }
        for load in &self.left_out {
            text.push_str(&format!(
                "{load}: left out, as the kernel has io_uring switched off\n"
            ));
        }
        text.push_str(&format!(
            "Is hiops worth it for reads of this drive? {}",
            self.answer
        ));
        let named = |answer: Answer| {
            let of = self.loads.iter().filter(|one| one.answer == answer);
            of.map(|one| one.load).collect::<Vec<_>>().join("; ")
        };
        if self.answer == Answer::Depends {
            let (yes, no) = (named(Answer::Yes), named(Answer::No));
            text.push_str(&format!(": yes with {yes}; no with {no}"));
        }
        text.push_str(".\n");
        text
    }

    fn table(&self) -> Table {
        let own = |name: &str| format!(">{name}");
        let (old, new) = (own(self.in_tree_driver), own(self.hiops_driver));
        let heads = [
            "LOAD", &old, ">+-", ">again", &new, ">+-", ">IOPS", ">p99", ">hiops", ">CPU",
            ">hiops", "ANSWER",
        ];
        let mut table = Table::new(&heads);
        let per_cent = |figure: &Figure| format!("{:.1}%", figure.spread() * 100.0);
        for one in &self.loads {
            let (old, again, new) = (&one.in_tree, &one.in_tree_again, &one.hiops);
            table.row([
                one.load.into(),
                format!("{:.0}", old.iops.median),
                per_cent(&old.iops),
                format!("{:.0}", again.iops.median),
                format!("{:.0}", new.iops.median),
                per_cent(&new.iops),
                format!("x{:.2}", one.iops_ratio),
                format!("{:.0}", old.p99_us.median),
                format!("{:.0}", new.p99_us.median),
                format!("{:.2}", old.cpu_us_per_io.median),
                format!("{:.2}", new.cpu_us_per_io.median),
                one.answer.to_string(),
            ]);
        }
        table
    }

    /// A picture of the IOPS.
    pub(crate) fn svg(&self) -> String {
        let bar = |figure: &Figure| Bar {
            value: figure.median,
            least: figure.least,
            most: figure.most,
        };
        let group = |one: &Compared| Group {
            name: format!("{}\nx{:.2}: {}", one.load, one.iops_ratio, one.answer),
            bars: vec![
                bar(&one.in_tree.iops),
                bar(&one.hiops.iops),
                bar(&one.in_tree_again.iops),
            ],
        };
        let groups: Vec<Group> = self.loads.iter().map(group).collect();
        let model = self.model.as_deref().unwrap_or(&self.disk);
        let title = format!("4 KiB random reads, {model}, {} CPUs", self.cpus);
        let again = format!("{} again", self.in_tree_driver);
        let keys = [self.in_tree_driver, self.hiops_driver, &again];
        bars(&title, "IOPS", &keys, &groups)
    }
}
