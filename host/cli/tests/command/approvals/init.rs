//! `toolcell init`: the file that it writes, whose examples are all valid.

use std::fs;
use std::os::unix::fs::symlink;

use toolcell_test_guests::{command_component, command_module, example};

use crate::approvals::existing;
use crate::place::Place;

/// Returns a place without a configuration, with these further files.
fn place(files: &[(&str, &[u8])]) -> Place {
    let place = Place::new("");
    for name in ["toolcell.toml", "hello.wasm", "asks.wasm", "declares.wasm"] {
        fs::remove_file(place.path().join(name)).expect("it is there");
    }
    for (name, content) in files {
        fs::write(place.path().join(name), content).expect("a place");
    }
    place
}

fn written(place: &Place) -> String {
    fs::read_to_string(place.path().join("toolcell.toml")).expect("it was written")
}

/// Returns the text without the `#` of the chosen examples.
fn uncommented(text: &str, is_chosen: impl Fn(usize) -> bool) -> String {
    let mut block = 0;
    let lines = text.lines().map(|line| {
        block += usize::from(line.is_empty());
        line.strip_prefix('#')
            .filter(|rest| !rest.starts_with(' ') && is_chosen(block))
            .unwrap_or(line)
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn init_sets_kind_of_components_without_tools() {
    let (hello, program) =
        (fs::read(example("hello")).expect("an example"), command_component(true));
    let place = place(&[
        ("hello.wasm", &hello),
        ("math.wasm", &existing::math()),
        ("-module.wasm", &command_module()),
        ("program.wasm", &program),
    ]);
    symlink("-module.wasm", place.path().join("same.wasm")).expect("a place");
    let shown = place.typed(&["init"]);
    shown.tells(0, "component: math: math.wasm, used as `functions`\n");
    let text = written(&place);
    for (name, file, kind) in [
        ("hello", "hello", ""),
        ("math", "math", "functions"),
        ("module", "-module", "command"),
        ("program", "program", "command"),
    ] {
        let kind = if kind.is_empty() { String::new() } else { format!("as = \"{kind}\"\n") };
        let section = format!("[components.{name}]\npath = \"{file}.wasm\"\n{kind}\n");
        assert!(text.contains(&section), "{section}\n{text}");
    }
    let printed: Vec<Vec<_>> =
        shown.stdout.lines().map(|line| line.split(' ').skip(1).collect()).collect();
    assert_eq!(printed, [["check"], ["approve"], ["serve"]], "{shown}");
    for words in [&printed[0][..], &["approve", "--yes"], &["list"]] {
        let shown = place.typed(words);
        assert_eq!(shown.status, 0, "{words:?}: {shown}");
    }
    let listed = place.typed(&["list", "--json"]).json();
    let tools: Vec<_> =
        listed["tools"].as_array().expect("tools").iter().map(|it| &it["tool"]).collect();
    assert_eq!(tools, ["greet", "whole_add", "module", "program"], "{listed}");
}

#[test]
fn init_examples_are_valid_alone_and_together() {
    let hello = fs::read(example("hello")).expect("an example");
    for files in [&[("hello.wasm", hello.as_slice())] as &[_], &[]] {
        let place = place(files);
        assert_eq!(place.typed(&["init"]).status, 0);
        // The component of the examples, if the folder has none.
        fs::write(place.path().join("notes.wasm"), &hello).expect("a place");
        let text = written(&place);
        let blocks = text.lines().filter(|line| line.is_empty()).count();
        let all = uncommented(&text, |_| true);
        let texts = (0..=blocks)
            .map(|block| uncommented(&text, |chosen| chosen == block || files.is_empty()));
        for text in texts.chain([text.clone(), all.clone()]) {
            place.write(&text);
            let shown =
                place.shown(place.command().args(["approve", "--yes"]).env("API_TOKEN", "a-value"));
            assert_eq!(shown.status, 0, "{shown}\n{text}");
        }
        let examples = [
            "[host]",
            "[defaults.limits]",
            ".grants]",
            ".grants.secrets.API_TOKEN]",
            ".limits]",
            "[tenants.acme]",
            "[tenants.acme.quota]",
            "[issuer]",
        ];
        for section in examples {
            assert!(
                all.lines().any(|line| line.starts_with('[') && line.ends_with(section)),
                "{section}\n{all}"
            );
        }
    }
}
