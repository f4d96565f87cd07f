// SPDX-License-Identifier: GPL-2.0
//! Inputs that were found, run once more.

/// Runs every input of `folder`; one that fails is named.
pub fn replay(folder: &str, run: impl Fn(&[u8])) {
    let mut inputs: Vec<_> = (std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "no inputs in {folder}");
    for path in inputs {
        println!("{}", path.display());
        run(&std::fs::read(path).unwrap());
    }
}
