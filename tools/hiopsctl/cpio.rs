// SPDX-License-Identifier: GPL-2.0
//! What is in an initramfs: archives of cpio (`newc`), one behind the other, of which the last may
//! be compressed, as the kernel takes them (its Documentation/driver-api/early-userspace). Whoever
//! compresses them is asked to undo it.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};

/// How each compression begins, and what undoes it.
const WAYS: [(&[u8], &[&str]); 6] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], &["zstd", "-dcq"]),
    (&[0x1f, 0x8b], &["gzip", "-dcq"]),
    (&[0xfd, b'7', b'z', b'X', b'Z'], &["xz", "-dcq"]),
    (&[0x5d, 0, 0], &["xz", "--format=lzma", "-dcq"]),
    (&[0x02, 0x21, 0x4c, 0x18], &["lz4", "-dcq"]),
    (b"BZh", &["bzip2", "-dcq"]),
];
/// What each file's head begins with, and how long the head is.
const MAGIC: [&[u8]; 2] = [b"070701", b"070702"];
const HEAD: usize = 110;
const LAST: &str = "TRAILER!!!";
/// A name is no longer than a path.
const LONGEST: u64 = 4096;

/// A file: its name, and its contents where they were asked for.
pub(crate) type File = (String, Vec<u8>);

/// The files of the image at `path`; with their contents those whose names are `wanted`.
///
/// # Errors
/// It can't be read, or is none.
pub(crate) fn files(path: &Path, wanted: fn(&str) -> bool) -> io::Result<Vec<File>> {
    let mut image = BufReader::new(std::fs::File::open(path)?);
    let mut found = Vec::new();
    loop {
        skip_zeroes(&mut image)?;
        let begins = peek(&mut image)?;
        if begins.is_empty() {
            return Ok(found);
        }
        if MAGIC.iter().any(|magic| begins.starts_with(magic)) {
            archive(&mut image, wanted, &mut found)?;
            continue;
        }
        let way = WAYS.iter().find(|(magic, _)| begins.starts_with(magic));
        let Some((_, way)) = way else {
            return Err(io::Error::other("it is no initramfs of a known form"));
        };
        compressed(image, way, wanted, &mut found)?;
        return Ok(found);
    }
}

/// The rest of `image`, which one of [`WAYS`] undoes.
fn compressed(
    mut image: BufReader<std::fs::File>,
    way: &[&str],
    wanted: fn(&str) -> bool,
    found: &mut Vec<File>,
) -> io::Result<()> {
    let at = image.stream_position()?;
    let mut file = image.into_inner();
    file.seek(SeekFrom::Start(at))?;
    let Some((program, args)) = way.split_first() else {
        return Ok(());
    };
    let mut undoes = Command::new(program);
    undoes.args(args).stdin(file).stderr(Stdio::null());
    let mut child = undoes.stdout(Stdio::piped()).spawn().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{program}, which made it, can't be run"),
        )
    })?;
    let Some(out) = child.stdout.take() else {
        return Ok(());
    };
    let mut out = BufReader::with_capacity(1 << 16, out);
    let mut read = Ok(());
    while read.is_ok() && skip_zeroes(&mut out).is_ok() && !out.fill_buf()?.is_empty() {
        read = archive(&mut out, wanted, found);
    }
    drop(out);
    child.wait()?;
    read
}

/// What comes next; the file is left where it is.
fn peek(image: &mut BufReader<std::fs::File>) -> io::Result<Vec<u8>> {
    let at = image.stream_position()?;
    let mut begins = Vec::new();
    image.by_ref().take(8).read_to_end(&mut begins)?;
    image.seek(SeekFrom::Start(at))?;
    Ok(begins)
}

/// The padding between two archives.
fn skip_zeroes(from: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = from.fill_buf()?;
        let zeroes = buffer.iter().take_while(|byte| **byte == 0).count();
        let all = zeroes == buffer.len();
        if zeroes == 0 {
            return Ok(());
        }
        from.consume(zeroes);
        if !all {
            return Ok(());
        }
    }
}

/// One archive, to its end.
fn archive(
    from: &mut impl Read,
    wanted: fn(&str) -> bool,
    found: &mut Vec<File>,
) -> io::Result<()> {
    loop {
        let mut head = [0; HEAD];
        from.read_exact(&mut head)?;
        let broken = || io::Error::other("it is broken");
        if !MAGIC.iter().any(|magic| head.starts_with(magic)) {
            return Err(broken());
        }
        // Fields of eight hexadecimal digits behind the magic number.
        let field = |at: usize| {
            let digits = head.get(6 + at * 8..14 + at * 8)?;
            u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let (size, length) = field(6).zip(field(11)).ok_or_else(broken)?;
        if length > LONGEST {
            return Err(broken());
        }
        let mut name = Vec::new();
        from.take(length).read_to_end(&mut name)?;
        pass(from, pad(length + HEAD as u64))?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        if name == LAST {
            return Ok(());
        }
        let name = name
            .trim_start_matches("./")
            .trim_start_matches('/')
            .to_string();
        let mut contents = Vec::new();
        match wanted(&name) {
            true => drop(from.take(size).read_to_end(&mut contents)?),
            false => pass(from, size)?,
        }
        pass(from, pad(size))?;
        found.push((name, contents));
    }
}

/// What fills up `size` to a multiple of four.
fn pad(size: u64) -> u64 {
    size.next_multiple_of(4) - size
}

fn pass(from: &mut impl Read, size: u64) -> io::Result<()> {
    let passed = io::copy(&mut from.take(size), &mut io::sink())?;
    match passed == size {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
