//! Sealed states of questions that a client changed, cut, or took from another call: the server
//! must accept none of them.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Server, json_of, mcp};
use crate::rng::SeededRng;
use crate::tally::{Failure, wrong};

/// The time after which a question cannot be answered any more: its lifetime and one more.
const EXPIRED_AFTER: Duration = Duration::from_secs(24 * 60 * 60 + 1);
/// The characters of a sealed state.
const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
const TOOL: &str = "book_table";

/// The protocol by which a state comes back.
#[derive(Clone, Copy)]
enum Form {
    /// `resume` of a call over HTTP.
    Resume,
    /// `requestState` of MCP.
    RequestState,
}

impl Server {
    /// Checks that a state is accepted unchanged, from the key, for the tool and the arguments that
    /// it was made for, until it expires, and in no other case.
    pub(super) fn check_states(&self, dice: &mut SeededRng) -> Result<(), Failure> {
        let form = dice.pick(&[Form::Resume, Form::RequestState]);
        let arguments = json!({"date": "2030-05-04", "time": "18:30", "party_size": 2});
        let other_arguments = json!({"date": "2030-05-04", "time": "18:30", "party_size": 3});
        let plan = json!({"goal": "tea", "steps": [{"id": "a", "title": "A"}]});
        let asked = self.call_with_state(form, &self.acme, TOOL, &arguments, None);
        let state = match form {
            Form::Resume => asked["outcome"]["ask_user"]["state"].as_str(),
            Form::RequestState => asked["result"]["requestState"].as_str(),
        };
        let Some(state) = state else {
            return Err(wrong("the tool asked nothing", asked.to_string()));
        };
        let mut forged = Vec::new();
        for _ in 0..8 {
            let at = dice.index(state.len());
            let (mut changed, mut cut) = (state.to_owned().into_bytes(), state.to_owned());
            let mut letters = ALPHABET.iter().cycle().skip(dice.index(64));
            changed[at] = *letters.find(|byte| **byte != changed[at]).unwrap_or(&b'A');
            cut.truncate(at);
            forged.extend([String::from_utf8(changed).unwrap_or_default(), cut]);
        }
        forged.push(format!("{state}A"));
        let answered = |key: &str, tool: &str, arguments: &Value, state: &str| {
            let answer = self.call_with_state(form, key, tool, arguments, Some(state));
            let codes = [&answer["outcome"]["refusal"]["kind"], &answer["error"]["data"]["code"]];
            let code = codes.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned();
            (code, answer)
        };
        for (key, tool, arguments, state, expected) in forged
            .iter()
            .map(|forged| (&self.acme, TOOL, &arguments, forged.as_str(), "resume_tampered"))
            .chain([
                (&self.globex, TOOL, &arguments, state, "resume_foreign"),
                (&self.acme_too, TOOL, &arguments, state, "resume_foreign"),
                (&self.acme, "submit_plan", &plan, state, "resume_other_tool"),
                (&self.acme, TOOL, &other_arguments, state, "resume_other_arguments"),
                // Unchanged, twice.
                (&self.acme, TOOL, &arguments, state, ""),
                (&self.acme, TOOL, &arguments, state, ""),
            ])
        {
            let (code, answer) = answered(key, tool, arguments, state);
            if code != expected {
                let what = format!("a state was answered by `{code}`, not `{expected}`");
                return Err(wrong(what, answer.to_string()));
            }
        }
        self.clock.advance(EXPIRED_AFTER);
        let (code, answer) = answered(&self.acme, TOOL, &arguments, state);
        if code != "resume_expired" {
            return Err(wrong("a state was accepted too late", answer.to_string()));
        }
        Ok(())
    }

    /// Calls a tool; with a state, it also sends an answer.
    fn call_with_state(
        &self,
        form: Form,
        key: &str,
        tool: &str,
        arguments: &Value,
        state: Option<&str>,
    ) -> Value {
        let answer = json!({"name": "Eve"});
        match form {
            Form::Resume => {
                let mut call = json!({"name": tool, "arguments": arguments});
                if let Some(state) = state {
                    call["resume"] = json!({"answer": answer, "state": state});
                }
                json_of(&self.sent(key, "POST /v1/calls", "", &call.to_string()))
            }
            Form::RequestState => {
                let (line, headers, mut message) = mcp(tool, arguments);
                let params = &mut message["params"];
                params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                    json!({"elicitation": {"form": {}}});
                if let Some(state) = state {
                    params["requestState"] = state.into();
                    params["inputResponses"] =
                        json!({"answer": {"action": "accept", "content": answer}});
                }
                json_of(&self.sent(key, line, &headers, &message.to_string()))
            }
        }
    }
}
