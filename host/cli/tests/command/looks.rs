//! `toolcell inspect` and `toolcell list`, and their cache.

use std::fs;

use toolcell_test_guests::{Answer, Hostile, Misdeed, Place, asker};

use crate::typed::{check, command, example, typed};

#[test]
fn inspect_shows_tools_and_imports() {
    check("inspect", &typed(&["inspect", "desk.wasm"]));
    let json = typed(&["inspect", "desk.wasm", "--json"]).json();
    assert_eq!(
        (&json["loadable"], &json["cached"], &json["pooled"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert!(
        json["digest"].as_str().unwrap().starts_with("sha256:") && json["size"].is_u64(),
        "{json}"
    );
    let tools = json["tools"].as_array().unwrap();
    assert_eq!((tools.len(), &tools[0]["name"]), (2, &"book_table".into()), "{json}");
    assert_eq!(tools[0]["parameters"]["properties"]["date"]["type"][0], "string", "{json}");
    assert!(
        json["imports"].as_array().unwrap().iter().all(|import| import["status"] == "inert"),
        "{json}"
    );
}

#[test]
fn inspect_lists_sections_and_producers() {
    let json = typed(&["inspect", "desk.wasm", "--json"]).json();
    let sections = json["sections"].as_array().unwrap();
    let sizes = sections.iter().map(|section| section["size"].as_u64().unwrap());
    assert_eq!(sizes.sum::<u64>(), json["size"].as_u64().unwrap(), "{json}");
    assert!(
        json["producers"].as_array().unwrap().iter().any(|it| it["name"] == "wit-component"),
        "{json}"
    );
    assert!(
        json["imports"].as_array().unwrap().iter().all(|import| !import["modules"][0].is_null()),
        "{json}"
    );
    assert_eq!(json["without_grants"]["callable"], true, "{json}");
    assert_eq!(json["lint"], serde_json::json!([]));
}

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

#[test]
fn inspect_names_the_runtime_of_a_language() {
    const TOOL: &str = r#"import { tool } from "toolcell";
export default tool({ name: "count", description: "Counts.", handler: () => 1,
  needs: [{ kind: "kv", pattern: "read a", reason: "to count" }] });"#;
    let place = tempfile::tempdir().unwrap();
    let (source, component) = (place.path().join("tool.js"), place.path().join("tool.wasm"));
    fs::write(&source, TOOL).unwrap();
    toolcell_author::build(&source, Some(&component)).expect("it builds");
    let text = typed(&["inspect", component.to_str().unwrap()]).stdout;
    for told in [
        "made with JavaScript, toolcell-author",
        "needs_grant  not granted, brought by the runtime QuickJS-ng",
        "unused_need  not judged: the runtime QuickJS-ng imports what the needs are for",
    ] {
        let found = text.lines().any(|line| {
            line.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(&told.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        assert!(found, "{told}\n{text}");
    }
}

#[test]
fn inspect_reports_refused_component_uncallable() {
    let silent = Hostile::new(Place::Describe, Misdeed::Abort);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, &silent.component()).unwrap();
    let path = file.path().to_str().unwrap();
    let shown = typed(&["inspect", path]);
    assert_eq!(shown.status, 1, "{shown}");
    assert!(shown.stdout.contains("without grants  cannot be called\n"), "{shown}");
    assert!(shown.stderr.contains("cannot be loaded"), "{shown}");
    let json = typed(&["inspect", path, "--json"]).json();
    assert_eq!(
        (&json["loadable"], &json["without_grants"]["callable"]),
        (&false.into(), &false.into()),
        "{json}"
    );
}

#[test]
fn list_shows_tools_and_errors() {
    let empty = format!("{}/empty", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&empty, "").unwrap();
    check("list", &typed(&["list", "hello.wasm", "markdown.wasm", &empty, "desk.wasm"]));
    let json = typed(&["list", "hello.wasm", &empty, "--json"]);
    assert_eq!(json.status, 1, "{json}");
    assert_eq!(json.json()["tools"][0]["tool"], "greet", "{json}");
    assert_eq!(json.json()["errors"][0]["error"]["kind"], "component", "{json}");
    assert_eq!(json.stderr, "");
}

#[test]
fn unusable_cache_is_a_warning() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (environment, arguments, expected) in [
        (
            None,
            vec!["--cache-dir", file.path().to_str().unwrap()],
            "warning: the artifact cache cannot be used",
        ),
        (None, vec![], "warning: no cache: neither"),
        (Some(("XDG_CACHE_HOME", "relative")), vec![], "warning: no cache: neither"),
        (Some(("TOOLCELL_LOG", "=[[")), vec!["--no-cache"], "warning: `TOOLCELL_LOG` is ignored"),
        (None, vec!["--no-cache"], ""),
    ] {
        let mut command = std::process::Command::new(command().get_program());
        command.env_clear().envs(environment).args(&arguments).arg("list").arg(example("hello"));
        let output = command.output().expect("the binary runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert!(
            stderr.contains(expected) && stderr.is_empty() == expected.is_empty(),
            "{arguments:?}: {stderr}"
        );
        assert_eq!(stderr.contains("hint: "), !expected.is_empty(), "{arguments:?}: {stderr}");
    }
}

#[test]
fn user_cache_directory_is_used() {
    let home = tempfile::tempdir().unwrap();
    for (variable, dir) in [("HOME", ".cache/toolcell"), ("XDG_CACHE_HOME", "toolcell")] {
        let mut command = std::process::Command::new(command().get_program());
        command.env_clear().env(variable, home.path()).arg("list").arg(example("hello"));
        assert!(command.output().expect("the binary runs").status.success());
        assert!(home.path().join(dir).is_dir(), "{variable}");
    }
}

#[test]
fn log_appears_only_with_verbose() {
    let quiet = typed(&["run", "hello.wasm", "greet", r#"{"name": "Ada"}"#]);
    assert_eq!(quiet.stderr, "", "{quiet}");
    let loud = typed(&["-vv", "run", "hello.wasm", "greet", r#"{"name": "Ada"}"#]);
    assert!(
        loud.stderr.contains("tool_call{id=\"call-1\" tool=greet") && loud.stdout == quiet.stdout,
        "{loud}"
    );
}
