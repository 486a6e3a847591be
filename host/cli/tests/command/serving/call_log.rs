//! The server's log of calls.

use rustix::process::Signal;
use serde_json::json;

use crate::place::Place;
use crate::serving::serve::Served;

/// Denials are logged by default, calls with `-v`.
#[test]
fn calls_and_denials_are_logged() {
    let place = Place::new("[components.clerk]\npath = \"clerk.wasm\"\n").approved();
    let call = json!({"name": "clerk", "arguments": {"steps": [["read", "/docs/in.txt"]]}});
    for words in [&[][..], &["-v"]] {
        let server = Served::start(&place, words);
        for _ in 0..2 {
            assert_eq!(server.asked("POST", "/v1/calls", None, Some(&call)).0, 200);
        }
        server.wait_for_stderr("denial=\"`read /docs/in.txt` is denied");
        if !words.is_empty() {
            server.wait_for_stderr("a call ended tool=\"clerk\"");
            server.wait_for_stderr("outcome=\"ok\"");
        }
        server.end(Signal::TERM);
    }
}
