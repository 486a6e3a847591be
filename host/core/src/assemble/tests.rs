//! Streams of fragments, and what becomes of them.

use super::*;

/// `+id name` starts, `id text` adds, `-id` ends.
fn fragment(line: &str) -> Fragment {
    let (id, rest) = line.split_once(' ').unwrap_or((line, ""));
    match id.split_at(1) {
        ("+", id) => Fragment::Start { id: id.into(), name: rest.into() },
        ("-", id) => Fragment::End { id: id.into() },
        _ => Fragment::Delta { id: id.into(), text: rest.into() },
    }
}

/// What the stream gives, in order: `id name(arguments)`, or the error's kind and id.
fn assembled(limit: u64, lines: &[&str]) -> Vec<String> {
    let mut assembler = Assembler::new().with_limit(limit);
    let mut given: Vec<_> = lines
        .iter()
        .filter_map(|line| match assembler.push(fragment(line)) {
            Ok(call) => call.map(|call| format!("{} {}({})", call.id, call.name, call.arguments)),
            Err(error) => Some(said(&error)),
        })
        .collect();
    given.extend(assembler.finish().iter().map(said));
    given
}

fn said(error: &AssembleError) -> String {
    assert!(error.to_string().contains(error.id()) && !error.hint().is_empty());
    let kind = match error {
        AssembleError::NotOpen { .. } => "not open",
        AssembleError::StartedTwice { .. } => "started twice",
        AssembleError::TooLarge { .. } => "too large",
        AssembleError::Malformed { .. } => "malformed",
        AssembleError::Unfinished { .. } => "unfinished",
    };
    format!("{kind} {}", error.id())
}

#[test]
fn streams_become_calls() {
    let whole = r#"a {"x":1}"#;
    let cases: [(&str, &[&str], &[&str]); 13] = [
        ("nothing", &[], &[]),
        ("in pieces", &["+a t", "a {\"x\":", "a 1", "a }", "-a"], &[r#"a t({"x":1})"#]),
        ("interleaved", &["+a t", "+b u", "b [", "a {", "b ]", "-b", "a }", "-a"], &["b u([])", "a t({})"]),
        ("no parameters", &["+a t", "-a", "+b u", "b ", "b   ", "-b"], &["a t({})", "b u({})"]),
        ("an id again after its end", &["+a t", "-a", "+a u", "-a"], &["a t({})", "a u({})"]),
        ("never started", &["a {}", "-a", "+b u", "-b"], &["not open a", "not open a", "b u({})"]),
        ("ended twice", &["+a t", "-a", "-a"], &["a t({})", "not open a"]),
        ("after the end", &["+a t", "-a", "a {}"], &["a t({})", "not open a"]),
        ("cut off", &["+b u", "+a t", whole], &["unfinished a", "unfinished b"]),
        ("not JSON", &["+a t", "a {\"x\":", "+b u", "-a", "-b"], &["malformed a", "b u({})"]),
        ("a member twice", &["+a t", r#"a {"x":1,"x":2}"#, "-a"], &["malformed a"]),
        (
            "started twice",
            &["+a t", "+b u", whole, "+a v", whole, "-b", "-a", "-a"],
            &["started twice a", "b u({})", "started twice a", "not open a"],
        ),
        ("broken and cut off", &["+a t", "+a t", whole], &["started twice a", "started twice a"]),
    ];
    for (what, lines, expected) in cases {
        assert_eq!(assembled(DEFAULT_ARGUMENTS, lines), expected, "{what}");
    }
}

#[test]
fn a_stream_cannot_fill_memory() {
    let room = 3 * (OPEN_CALL as u64 + 2);
    let long = format!("a \"{}\"", "x".repeat(OPEN_CALL));
    let cases: [(&str, &[&str], &[&str]); 3] = [
        // What breaks gives its bytes back, so that the others go on.
        (
            "one long call",
            &["+a t", "+b u", &long, &long, &long, "b [1,2]", "-a", "-b"],
            &["too large a", "too large a", "b u([1,2])"],
        ),
        (
            "many calls",
            &["+a t", "+b u", "+c v", "+d w", "-a", "+d w", "-d", "-c"],
            &["too large d", "a t({})", "d w({})", "c v({})", "unfinished b"],
        ),
        ("ended calls", &["+a t", "-a"].repeat(1000), &["a t({})"; 1000]),
    ];
    for (what, lines, expected) in cases {
        assert_eq!(assembled(room, lines), expected, "{what}");
    }
    let mut assembler = Assembler::new();
    assembler.start("a", "t").unwrap();
    let refused = (0..20).find(|_| assembler.delta("a", &"x".repeat(100_000)).is_err());
    assert_eq!(refused, Some(10), "the limit of a call's arguments is that of its fragments");
}

#[test]
fn strange_ids_are_fit_to_be_shown() {
    let error = Assembler::new().end(&format!("\u{1b}[31m{}", "x".repeat(1000))).unwrap_err();
    let text = error.to_string();
    assert!(text.len() < 200 && !text.contains('\u{1b}'), "{text}");
}
