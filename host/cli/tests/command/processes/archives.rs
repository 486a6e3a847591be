//! Archives whose entries would be written outside of their folder: no archive is accepted as a
//! component, so none is unpacked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::typed::command;

/// The kind of an archive's entry.
#[derive(Clone, Copy)]
enum Entry {
    File,
    HardLink,
    Symlink,
    Device,
    Pipe,
    /// A PAX header, which gives the next entry another name.
    Pax,
}

/// An entry's kind, its name, and its target or content.
type Row = (Entry, String, String);

/// Contents of malicious archives; `away` is a directory outside of theirs.
fn rows(away: &str) -> [Vec<Row>; 10] {
    let row = |entry, name: &str, content: &str| (entry, name.to_owned(), content.to_owned());
    let file = |name: &str| vec![row(Entry::File, name, "planted")];
    let pax = format!("path={away}/planted\n");
    [
        file("planted"),
        file("../planted"),
        file("../../../planted"),
        file(&format!("{away}/planted")),
        file("a/../../planted"),
        file("..\\planted"),
        vec![row(Entry::Symlink, "link", away), row(Entry::File, "link/planted", "planted")],
        vec![
            row(Entry::HardLink, "planted", &format!("{away}/kept")),
            row(Entry::File, "planted", "planted"),
        ],
        vec![
            row(Entry::Pax, "pax", &format!("{} {pax}", pax.len() + 3)),
            row(Entry::File, "plain", "planted"),
        ],
        vec![row(Entry::Device, "planted", ""), row(Entry::Pipe, "planted", "")],
    ]
}

/// Makes a tar archive. Source: POSIX, `pax`, ustar interchange format.
fn tar(rows: &[Row]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (entry, name, content) in rows {
        let (kind, link, content) = match entry {
            Entry::File => (b'0', "", content.as_str()),
            Entry::HardLink => (b'1', content.as_str(), ""),
            Entry::Symlink => (b'2', content.as_str(), ""),
            Entry::Device => (b'3', "", ""),
            Entry::Pipe => (b'6', "", ""),
            Entry::Pax => (b'x', "", content.as_str()),
        };
        let mut head = [0; 512];
        let mut put =
            |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, name);
        put(100, "0000644\0");
        put(124, &format!("{:011o}\0", content.len()));
        put(148, "        ");
        put(157, link);
        put(257, "ustar\x0000");
        head[156] = kind;
        let sum = format!("{:06o}\0 ", head.iter().map(|byte| u32::from(*byte)).sum::<u32>());
        head[148..156].copy_from_slice(sum.as_bytes());
        archive.extend(head);
        archive.extend(content.as_bytes());
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

/// Returns the CRC-32 of both formats below, computed bit by bit.
fn checksum(bytes: &[u8]) -> [u8; 4] {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step));
    (!sum).to_le_bytes()
}

/// Makes a gzip file of one stored block. Source: RFC 1951 and 1952.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a small archive");
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let sizes = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    [&head, &sizes[..], bytes, &checksum(bytes), &u32::from(length).to_le_bytes()].concat()
}

/// Makes a zip archive without compression. The kind of an entry is in the upper half of its
/// attributes. Source: APPNOTE 6.3.
fn zip(rows: &[Row]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (entry, name, content) in rows {
        let mode: u32 = match entry {
            Entry::File | Entry::HardLink | Entry::Pax => 0o100_644,
            Entry::Symlink => 0o120_777,
            Entry::Device => 0o020_666,
            Entry::Pipe => 0o010_666,
        };
        let [size, at] = [content.len(), archive.len()].map(|number| (number as u32).to_le_bytes());
        let length = (name.len() as u16).to_le_bytes();
        let told = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0],
            &checksum(content.as_bytes())[..],
            &size,
            &size,
            &length,
            &[0; 2],
        ];
        let told = told.concat();
        archive.extend([b"PK\x03\x04", &told[..], name.as_bytes(), content.as_bytes()].concat());
        let more = [&[0; 6], &(mode << 16).to_le_bytes()[..], &at].concat();
        directory.extend([b"PK\x01\x02\x14\x03", &told[..], &more, name.as_bytes()].concat());
    }
    let count = (rows.len() as u16).to_le_bytes();
    let [size, at] = [directory.len(), archive.len()].map(|number| (number as u32).to_le_bytes());
    [&archive, &directory, &b"PK\x05\x06\0\0\0\0"[..], &count, &count, &size, &at, &[0; 2]].concat()
}

/// Adds everything below a directory, with its content.
fn below(path: &Path, found: &mut BTreeSet<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(path).expect("a directory").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
        let content = if kind.is_file() { fs::read(&path).expect("a file") } else { Vec::new() };
        found.insert((path.clone(), content));
        if kind.is_dir() {
            below(&path, found);
        }
    }
}

#[test]
fn archive_is_rejected_and_never_unpacked() {
    let root = tempfile::tempdir().expect("a place");
    let path = |name: &str| root.path().join(name);
    let work = path("1/2/3/4");
    for folder in [&work, &path("away"), &path("home"), &path("tmp")] {
        fs::create_dir_all(folder).expect("a place");
    }
    fs::write(path("away/kept"), "kept").expect("a place");
    let typed = |words: &[&str]| {
        let mut command = command();
        command.current_dir(&work).args(words);
        for (name, folder) in [
            ("HOME", "home"),
            ("TMPDIR", "tmp"),
            ("XDG_CACHE_HOME", "home"),
            ("XDG_STATE_HOME", "home"),
        ] {
            command.env(name, path(folder));
        }
        let output = command.output().expect("the binary runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let component = work.join("archive.wasm");
    let file = component.to_str().expect("a path");
    let commands = [&["run", file, "greet"][..], &["inspect", file], &["list", file]];
    // The command's own files exist before, so that they do not count as an archive's.
    fs::write(&component, "").expect("a place");
    commands.iter().for_each(|words| assert_eq!(typed(words).0, Some(1)));
    let away = path("away").to_str().expect("a path").to_owned();
    for rows in rows(&away) {
        let tar = tar(&rows);
        for (archive, expected) in
            [(gzip(&tar), "gzip-compressed"), (zip(&rows), "a zip archive"), (tar, "a tar archive")]
        {
            fs::write(&component, archive).expect("a place");
            let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
            below(root.path(), &mut before);
            for words in commands {
                let (status, said) = typed(words);
                assert_eq!(status, Some(1), "{words:?}: {said}");
                assert!(said.contains(expected) && said.contains("hint: "), "{words:?}: {said}");
            }
            below(root.path(), &mut after);
            assert!(
                before == after,
                "{:?}",
                after.difference(&before).map(|(path, _)| path).collect::<Vec<_>>()
            );
            assert!(after.iter().all(|(path, _)| !path.ends_with("planted")), "{expected}");
        }
    }
}
