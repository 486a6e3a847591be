//! The source lines of a trap: they are shown to a person, and reading them is bounded.

use std::fs;

use serde_json::json;
use toolcell_test_guests::{Hostile, Misdeed, Place};

use crate::typed::{CommandResult, limited, typed};

type Sections = Vec<(&'static str, Vec<u8>)>;

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("a length").to_le_bytes()
}

/// Returns a unit of debug information, or a line program: its length, then its content.
fn unit(content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    [&length(&content)[..], &content].concat()
}

/// Returns debug information (DWARF 4) that maps all code to line 7 of `src/tool.c` in the folder
/// `/tool`.
fn lines() -> Sections {
    // A compile unit without children: name, folder, offset of its lines, first address, bytes of
    // code.
    let abbreviations = [1, 0x11, 0, 3, 8, 0x1b, 8, 0x10, 0x17, 0x11, 1, 0x12, 6, 0, 0, 0];
    let info = [
        &[4, 0, 0, 0, 0, 0, 4, 1][..],
        b"src/tool.c\0/tool\0",
        &[0; 4],
        &[1, 0, 0, 0],
        &[0xff, 0xff, 0, 0],
    ];
    // The header of the line program, its standard instructions, no folders, one file.
    let head = [
        &[1, 1, 1, 0xfb, 14, 13][..],
        &[0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1],
        b"\0src/tool.c\0\0\0\0\0",
    ]
    .concat();
    // To the first address and line 7; a row; to the end of the code.
    let program = [0, 5, 2, 1, 0, 0, 0, 3, 6, 1, 2, 0xff, 0xff, 3, 0, 1, 1];
    let line = unit(&[&[4, 0], &length(&head), &head, &program]);
    vec![
        (".debug_abbrev", abbreviations.to_vec()),
        (".debug_info", unit(&info)),
        (".debug_line", line),
    ]
}

/// Returns small debug information that takes very long and very much memory to read: thousands of
/// units, each with a table of its own that is nearly all of one section.
fn bomb() -> Sections {
    const ENTRIES: u32 = 60_000;
    let mut abbreviations = Vec::new();
    let mut info = Vec::new();
    for code in 1..=ENTRIES {
        info.extend(unit(&[&[4, 0], &length(&abbreviations), &[4, 0]]));
        // Its number in three bytes, an ordinary tag, no children, no attributes.
        let number = [code as u8 | 0x80, (code >> 7) as u8 | 0x80, (code >> 14) as u8];
        abbreviations.extend([&number[..], &[0x11, 0, 0, 0]].concat());
    }
    abbreviations.push(0);
    vec![(".debug_abbrev", abbreviations), (".debug_info", info)]
}

/// Returns a tool that traps and has these sections.
fn trapping(sections: Sections) -> Vec<u8> {
    let sections =
        sections.into_iter().map(|(name, data)| (name, &*data.leak())).collect::<Vec<_>>().leak();
    let mut hostile = Hostile::new(Place::Execute, Misdeed::Abort);
    hostile.sections = sections;
    hostile.component()
}

/// Runs `toolcell run` with a tool that traps and has these sections.
fn trapped(sections: Sections, words: &[&str]) -> CommandResult {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("trap.wasm.bin");
    fs::write(&path, trapping(sections)).expect("a file");
    typed(&[&["run", path.to_str().expect("a path"), "hostile", "{}"], words].concat())
}

#[test]
fn trap_shows_source_line() {
    let shown = trapped(lines(), &[]);
    assert_eq!(shown.status, 20, "{shown}");
    assert!(shown.stderr.lines().any(|line| line.trim() == "at: src/tool.c:7"), "{shown}");
    assert!(!shown.stderr.contains("in: "), "{shown}");
    let json = trapped(lines(), &["--json"]).json();
    let frames =
        json["outcome"]["tool_error"]["cause"]["frames"].as_array().expect("frames").clone();
    assert!(frames[0]["function"].is_u64() && frames[0]["offset"].is_u64(), "{json}");
    let without = trapped(Vec::new(), &[]);
    assert!(without.status == 20 && !without.stderr.contains("at: "), "{without}");
}

#[test]
fn trap_found_by_fuzzing_shows_source_line() {
    const CASES: &str = "cases: [{ name: traps, expect: { tool_error: handler_raised } }]\n";
    let dir = tempfile::tempdir().expect("a folder");
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("trap.wasm.bin"), trapping(lines())).expect("a file");
    fs::write(path("cases.yaml"), CASES).expect("a file");
    let (project, component, report) = (path(""), path("trap.wasm.bin"), path("report.xml"));
    let words = ["test", &*project, "--component", &*component, "--fuzz", "3", "--junit", &*report];
    let shown = typed(&words);
    assert_eq!(shown.status, 1, "{shown}");
    assert!(
        shown.stdout.contains("\n             at src/tool.c:7\n         arguments: {}\n"),
        "{shown}"
    );
    let report = fs::read_to_string(&report).expect("a report");
    assert!(report.contains("&#10;    at src/tool.c:7&#10;arguments: {}"), "{report}");
    let json = typed(&[&words[..], &["--json"]].concat()).json();
    let failure = &json["fuzz"][0]["failures"][0];
    assert_eq!(failure["lines"], json!([{"file": "src/tool.c", "line": 7}]), "{json}");
}

/// The child that reads it is ended by its limits, and the rest of the error is shown.
#[test]
fn endless_debug_info_read_is_abandoned() {
    let shown = trapped(bomb(), &[]);
    assert_eq!(shown.status, 20, "{shown}");
    assert!(
        shown.stderr.contains("reason: handler_raised") && !shown.stderr.contains("at: "),
        "{shown}"
    );
}

/// Read from the kernel while the child still waits for a component.
#[test]
fn debug_info_reader_is_limited_before_it_reads() {
    let limits = ["Max cpu time 2 2 seconds", "Max address space 1073741824 1073741824 bytes"];
    limited(&["lines-worker", "1:1"], &limits);
}
