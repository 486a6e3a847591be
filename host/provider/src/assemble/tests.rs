//! Tests of the assembler: streams of fragments, and the calls or errors that they give.
//!
//! Tables in a short notation cover interleaved calls, broken ones, cut answers, servers that
//! deviate from OpenAI's form, and the bound on memory.

use toolcell_contract::limits::Limits;

use super::*;
use crate::cases::rows;

/// `+id name` starts, `id text` adds, `-id` ends. `INDEX` starts or continues a call by its place:
/// `0 id=a name=t text={}`. `-0` ends one.
fn fragment(line: &str) -> Fragment {
    let (id, rest) = line.split_once(' ').unwrap_or((line, ""));
    let part = |key: &str| {
        let mut parts = rest.split(' ');
        parts.find_map(|part| part.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned)
    };
    if let Ok(index) = id.parse() {
        return Fragment::Indexed { index, id: part("id"), name: part("name"), text: part("text") };
    }
    match id.split_at(1) {
        ("+", id) => Fragment::Start { id: id.into(), name: rest.into() },
        ("-", id) => match id.parse() {
            Ok(index) => Fragment::EndIndexed { index },
            Err(_) => Fragment::End { id: id.into() },
        },
        _ => Fragment::Delta { id: id.into(), text: rest.into() },
    }
}

/// The results of the stream, in order: `id name(arguments)`, or the error's kind and id. `!` ends
/// all calls by place.
fn assembled(limit: u64, lines: &[&str]) -> Vec<String> {
    let mut assembler = Assembler { limit, ..Assembler::new() };
    let told = |call: Result<ToolCall, AssembleError>| match call {
        Ok(call) => format!("{} {}({})", call.id, call.name, call.arguments),
        Err(error) => description(&error),
    };
    let mut given = Vec::new();
    for line in lines {
        match *line {
            "!" => given.extend(assembler.end_all().into_iter().map(told)),
            line => given.extend(assembler.push(fragment(line)).transpose().map(told)),
        }
    }
    given.extend(assembler.finish().iter().map(description));
    given
}

fn description(error: &AssembleError) -> String {
    assert!(error.to_string().contains(error.id()) && !error.hint().is_empty());
    let kind = match error {
        AssembleError::NotOpen { .. } => "not open",
        AssembleError::StartedTwice { .. } => "started twice",
        AssembleError::TooLarge { .. } => "too large",
        AssembleError::Malformed { .. } => "malformed",
        AssembleError::Incomplete { missing, .. } => missing,
        AssembleError::Unfinished { .. } => "unfinished",
    };
    format!("{kind} {}", error.id())
}

#[test]
fn streamed_fragments_become_calls() {
    let cases = rows::<(&str, Vec<&str>, Vec<&str>)>("assemble", "streamed_fragments_become_calls");
    for (what, lines, expected) in cases {
        assert_eq!(assembled(Limits::DEFAULT_ARGUMENTS, &lines), expected, "{what}");
    }
}

#[test]
fn stream_memory_is_bounded() {
    let room = 3 * (OPEN_CALL as u64 + 2);
    let long = format!("a \"{}\"", "x".repeat(OPEN_CALL));
    let cases: [(&str, &[&str], &[&str]); 3] = [
        // A broken call frees its bytes, so the others can go on.
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
fn ids_are_escaped_and_cut_in_errors() {
    let error = Assembler::new().end(&format!("\u{1b}[31m{}", "x".repeat(1000))).unwrap_err();
    let text = error.to_string();
    assert!(text.len() < 200 && !text.contains('\u{1b}'), "{text}");
}

/// Fragments as OpenAI streams them, and as servers with less exact forms of it do.
#[test]
fn indexed_fragments_become_calls() {
    let cases = rows::<(&str, Vec<&str>, Vec<&str>)>("assemble", "indexed_fragments_become_calls");
    for (what, lines, expected) in cases {
        let limit = if what == "too large" { 2 * (OPEN_CALL as u64 + 4) } else { 1000 };
        assert_eq!(assembled(limit, &lines), expected, "{what}");
    }
}

#[test]
fn open_calls_are_listed() {
    let mut assembler = Assembler::new();
    for line in ["1 name=u text=[1,", "+a t", "a {", "+b t"] {
        assembler.push(fragment(line)).unwrap();
    }
    assembler.start("b", "t").unwrap_err();
    let open: Vec<_> =
        assembler.open().map(|call| (call.index, call.id, call.name, call.arguments)).collect();
    assert_eq!(open, [(None, "a", "t", "{"), (None, "b", "", ""), (Some(1), "", "u", "[1,")]);
    let broken = assembler.open().find_map(|call| call.broken.cloned());
    assert_eq!(broken, Some(AssembleError::StartedTwice { id: "b".into() }));
    assembler.end("b").unwrap_err();
    assert_eq!(assembler.open().count(), 2);
    let left: Vec<_> = assembler.finish().iter().map(description).collect();
    assert_eq!(left, ["unfinished a", "unfinished #1"]);
}

/// In a cut answer, the call of the last fragment is incomplete, whatever its arguments are.
#[test]
fn cut_answer_never_yields_its_last_call() {
    for (lines, expected) in
        rows::<(Vec<&str>, &str)>("assemble", "cut_answer_never_yields_its_last_call")
    {
        let mut assembler = Assembler::new();
        for line in &lines {
            assembler.push(fragment(line)).unwrap();
        }
        let ended = assembler.end_truncated().into_iter().map(|ended| match ended {
            Ok(call) => call.id,
            Err(AssembleError::Unfinished { id }) => format!("{id} unfinished"),
            Err(error) => panic!("{error}"),
        });
        assert_eq!(ended.collect::<Vec<_>>().join(", "), expected, "{lines:?}");
        assert_eq!(assembler.held, 0, "{lines:?}");
    }
}
