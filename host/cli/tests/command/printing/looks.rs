//! `toolcell inspect` and `toolcell list`: lint findings.

use std::fs;

use toolcell_test_guests::{Answer, Hostile, asker};

use crate::typed::{example, typed};

#[test]
fn inspect_and_list_show_lint_findings() {
    let file = |bytes: &[u8]| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        file
    };
    let parameters = Some(r#"{"type": "object", "properties": {"how": {"type": "string"}}}"#);
    let silent = Hostile { description: "", parameters, ..Hostile::answering(Answer::Echo) };
    let needs = &[["http", "GET https://a.example", "to ask"], ["kv", "read notes/*", "to look"]];
    // A `producers` section with one field, `language`, and one value. CPython imports everything,
    // whatever the author writes.
    let python = b"\x00\x21\x09producers\x01\x08language\x01\x06Python\x043.14";
    let hello = fs::read(example("hello")).unwrap();
    // Appends a custom section of this name, with this many bytes.
    let with = |component: &[u8], name: &str, bytes: usize| {
        let content =
            [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), &vec![0; bytes]].concat();
        let seven = |shift: usize| (content.len() >> shift) as u8 | 0x80;
        let length = [seven(0), seven(7), seven(14), seven(21), 0];
        [component, &[0], &length, &content].concat()
    };
    let mib = |count: usize| count << 20;
    for (component, expected, told) in [
        (
            with(&hello, ".debug_info", mib(1)),
            &["debug_information"][..],
            "1.0 MiB of it is debug information",
        ),
        (with(&hello, "big", mib(21)), &["large"], "take long to compile and to send"),
        (with(&[&*hello, python].concat(), "big", mib(21)), &[], ""),
        (
            with(&[&*hello, python].concat(), "big", mib(41)),
            &["large"],
            "take long to compile and to send",
        ),
        ([&*asker(needs), python].concat(), &["unused_need"; 2], ""),
        (
            asker(needs),
            &["unused_need", "unused_need", "undeclared_import"],
            "the need `kv read notes/*`",
        ),
        (asker(&[["secret", "token", "to"], ["reveal", "key", "to"]]), &[], ""),
        (
            silent.component(),
            &["no_description", "no_description"],
            "parameters without a description: how",
        ),
        (hello, &[], ""),
    ] {
        let file = file(&component);
        let path = file.path().to_str().unwrap();
        let json = typed(&["inspect", path, "--json"]).json();
        let codes: Vec<_> = json["lint"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["code"].as_str().unwrap())
            .collect();
        assert_eq!(codes, expected, "{json}");
        let text = typed(&["inspect", path]).stdout;
        assert_eq!(text.contains("\nlint\n"), !expected.is_empty(), "{text}");
        assert!(text.contains(told), "{text}");
        let mut listed =
            typed(&["list", path, "--json"]).json()["lint"].as_array().unwrap().clone();
        for finding in &mut listed {
            let named = finding.as_object_mut().unwrap().remove("component");
            assert_eq!(named, Some(path.into()), "{finding}");
        }
        assert_eq!(json["lint"].as_array(), Some(&listed));
        let warned = typed(&["list", path]).stderr;
        assert_eq!(
            warned.lines().filter(|line| line.starts_with("warning: ")).count(),
            expected.len(),
            "{warned}"
        );
        assert!(warned.contains(told), "{warned}");
    }
}
