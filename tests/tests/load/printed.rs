//! What a program prints that is no text, and what it printed before it was ended.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolcell::{
    CallOptions, CallResult, Command, CommandOutput, Event, Executor, Grants, Limits, Media, Outcome, Part, ToolCall,
    ToolError,
};
use toolcell_test_guests::command_module;
use toolcell_tests::{call, wait};

use crate::kinds::{command, load_as};

/// Seen to lose all of it for one byte.
#[test]
fn output_that_is_no_text_is_kept() {
    let run = |change: fn(&mut Command)| {
        let component = load_as(command_module(), command(change), Grants::default()).expect("it loads");
        let result = call(&component, "tool", r#"{"args": ["u"]}"#, Limits::default()).result;
        let CallResult::Outcome(Outcome::Ok(output)) = result else { panic!("{result:?}") };
        output
    };
    let text = run(|_| {});
    assert_eq!(text.value.to_value(), json!("ok\u{fffd}"));
    assert!(text.message.is_some_and(|note| note.contains("not UTF-8 at byte 2")));
    let bytes = run(|command| command.output = CommandOutput::Bytes);
    assert_eq!(bytes.message.as_deref(), Some("3 bytes of application/octet-stream"));
    let image = run(|command| {
        (command.output, command.media_type) = (CommandOutput::Bytes, Some("image/png".to_owned()));
    });
    let Some(Part::Image(Media { mime_type, data })) = image.parts.first() else { panic!("{image:?}") };
    assert_eq!((&**mime_type, &**data), ("image/png", &b"ok\xff"[..]));
}

#[test]
fn a_program_that_traps_keeps_what_it_printed() {
    let module = load_as(command_module(), command(|_| {}), Grants::default()).expect("it loads");
    let printed = Arc::<Mutex<Vec<String>>>::default();
    let sink = Arc::clone(&printed);
    let executor = Executor::new().with_events(move |event| {
        if let Event::Log { message, .. } = event {
            sink.lock().expect("no panic").push(message);
        }
    });
    let (tool, call) = (module.tools()[0].clone(), ToolCall::new("1", "tool", r#"{"args": ["t"]}"#));
    let result = wait(async move { executor.call(&tool, call, CallOptions::default()).await }).result;
    let CallResult::ToolError(ToolError::HandlerRaised(raised)) = result else { panic!("{result:?}") };
    assert_eq!(
        (raised.stdout.as_deref(), &**printed.lock().expect("no panic")),
        (Some("partly\n"), &["partly".to_owned()][..])
    );
}
