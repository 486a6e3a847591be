//! Name clashes between the tools of two components.

use std::fs;

use toolcell_test_guests::{Answer, Hostile};

use crate::place::Place;

#[test]
fn check_warns_of_clashing_tool_names() {
    let place = Place::new(
        "[components.one]\npath = \"one.wasm\"\n[components.two]\npath = \"two.wasm\"\n",
    );
    let write = |file: &str, name: &'static str| {
        let guest = Hostile { name, ..Hostile::answering(Answer::Echo) };
        fs::write(place.path().join(file), guest.component()).expect("a file");
    };
    write("one.wasm", "read_file");
    for (name, warning) in [
        ("read_file", Some(": `one` and `two` both offer a tool `read_file`\n")),
        ("read_fi1e", Some(": `read_fi1e` of `two` looks like `read_file` of `one`\n")),
        ("write_file", None),
    ] {
        write("two.wasm", name);
        let shown = place.typed(&["check"]);
        assert_eq!(shown.status, 0, "each of them can be run: {shown}");
        assert_eq!(shown.stderr.contains("two sections"), warning.is_some(), "{shown}");
        assert!(warning.is_none_or(|warning| shown.stderr.contains(warning)), "{shown}");
    }
}
