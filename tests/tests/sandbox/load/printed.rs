//! Output of a program that is not UTF-8, and output of a program that is ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolcell::component::{Command, CommandOutput};
use toolcell::message::Failure;
use toolcell::outcome::{Media, Part};
use toolcell::{CallOptions, CallResult, Event, Executor, Grants, Limits, Outcome, ToolCall};
use toolcell_test_guests::command_module;
use toolcell_tests::{call, ending, wait};

use super::kinds::{command, load_as, program};

#[test]
fn non_utf8_output_is_kept() {
    let run = |change: fn(&mut Command)| {
        let component =
            load_as(command_module(), command(change), Grants::default()).expect("it loads");
        let result = call(&component, "tool", r#"{"args": ["u"]}"#, Limits::default()).result;
        let CallResult::Outcome(Outcome::Ok(output)) = result else { panic!("{result:?}") };
        output
    };
    let text = run(|_| {});
    assert_eq!(text.value.to_value(), json!("ok\u{fffd}"));
    assert!(
        matches!(&*text.parts, [Part::Text { text }] if text.contains("not UTF-8 at byte 2")),
        "{text:?}"
    );
    let bytes = run(|command| command.output = CommandOutput::Bytes);
    assert_eq!(bytes.message.as_deref(), Some("3 bytes of application/octet-stream"));
    let image = run(|command| {
        (command.output, command.media_type) = (CommandOutput::Bytes, Some("image/png".to_owned()));
    });
    let Some(Part::Image(Media { mime_type, data })) = image.parts.first() else {
        panic!("{image:?}")
    };
    assert_eq!((&**mime_type, &**data), ("image/png", &b"ok\xff"[..]));
}

/// The program ends by a trap, at a deadline that passes while it runs, or without fuel.
#[test]
fn ended_program_keeps_its_printed_output() {
    let module = program(command_module()).expect("it loads");
    let endless = Limits { fuel: u64::MAX, timeout: Duration::from_secs(2), ..Limits::default() };
    for (arguments, limits, end) in [
        (r#"{"args": ["t"]}"#, Limits::default(), "handler_raised/unreachable"),
        (r#"{"args": ["l"]}"#, endless, "timeout/deadline"),
        (r#"{"args": ["l"]}"#, Limits { fuel: 10_000_000, ..Limits::default() }, "timeout/fuel"),
    ] {
        let printed = Arc::<Mutex<Vec<String>>>::default();
        let sink = Arc::clone(&printed);
        let executor = Executor::new().with_limits(limits).with_events(move |event| {
            if let Event::Log { message, .. } = event {
                sink.lock().expect("no panic").push(message);
            }
        });
        let (tool, call) = (module.tools()[0].clone(), ToolCall::new("1", "tool", arguments));
        let called = async move { executor.call(&tool, call, CallOptions::default()).await };
        let result = wait(called).result;
        assert_eq!(ending(&result), end);
        let cause = &serde_json::to_value(&result).expect("JSON")["tool_error"]["cause"];
        let data = Failure::of(&result).and_then(|failure| Some(failure.data()?.to_value()));
        assert_eq!(cause["stdout"], "partly\n", "{end}");
        assert_eq!(data, Some(json!({ "stdout": "partly\n" })), "{end}");
        assert_eq!(&**printed.lock().expect("no panic"), &["partly".to_owned()], "{end}");
    }
}
