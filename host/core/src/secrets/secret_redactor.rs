//! Removes the values of secrets from results, events, texts and JSON of a call.
//!
//! A [`SecretRedactor`] wraps a [`Redactor`], which finds the values in bytes. If a call has
//! secrets, the engine applies it to all that the tool returns, and to each event, before anything
//! of it reaches observers or the caller. It returns the same structure with `[redacted]` in place
//! of each value.
//! JSON stays valid JSON: strings, member names and numbers are redacted one by one. If redaction
//! makes two names equal, they get numbers. A value that spans several strings replaces the whole
//! JSON by one string. Binary data that hides a value under compression is replaced as a whole.
//! Not here: the encodings of a value that are found ([`Redactor`]), and the choice of the values
//! for a call (`engine/cell/call_redactor`).

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;
use toolcell_contract::call::{CallResult, ToolCall};
use toolcell_contract::event::Event;
use toolcell_contract::json::{Json, scalars};
use toolcell_contract::outcome::refusal::{Fault, FaultKind, Refusal};
use toolcell_contract::outcome::tool_error::{ReturnRule, ToolError};
use toolcell_contract::outcome::{Media, Outcome, Part, Resource, ResourceContent};

use super::redact::{Inflated, InflationWork, REPLACEMENT, Redactor};

/// Redacts the values of some secrets. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SecretRedactor(pub(crate) Redactor);

impl SecretRedactor {
    /// Returns true if a result has bytes. Their search may take seconds of a processor, because
    /// they may be compressed: it must not run on a thread that others wait for.
    pub(crate) fn is_slow(result: &CallResult) -> bool {
        let CallResult::Outcome(Outcome::Ok(output)) = result else { return false };
        output.parts.iter().any(|part| match part {
            Part::Image(_) | Part::Audio(_) => true,
            Part::Resource(resource) => matches!(resource.content, ResourceContent::Bytes { .. }),
            Part::Text { .. } | Part::ResourceLink { .. } => false,
        })
    }

    /// Redacts the result of a call.
    pub(crate) fn result(&self, mut result: CallResult) -> CallResult {
        match &mut result {
            CallResult::Outcome(outcome) => self.outcome(outcome),
            CallResult::ToolError(error) => self.error(error),
            CallResult::Refusal(
                Refusal::InvalidArguments(faults) | Refusal::InvalidAnswer(faults),
            ) => self.faults(faults),
            CallResult::Refusal(_) => {}
        }
        result
    }

    /// Redacts an event of a running call.
    pub(crate) fn event(&self, mut event: Event) -> Event {
        match &mut event {
            Event::Progress { message, .. } => self.maybe(message),
            Event::Log { message, .. } => self.text(message),
            Event::Denied { denial, .. } => {
                self.text(&mut denial.request);
                self.maybe(&mut denial.grant);
            }
            // `Started` is sent before the tool runs. `Completed` has a result that is redacted
            // already.
            Event::Started { .. } | Event::Completed { .. } | _ => {}
        }
        event
    }

    /// Redacts the name and the arguments of a call. Returns true if anything was redacted.
    pub(crate) fn call(&self, call: &mut ToolCall) -> bool {
        let before = call.clone();
        self.text(&mut call.name);
        match Json::parse(before.arguments.clone()) {
            Ok(arguments) => {
                let mut hidden = arguments.clone();
                self.json(&mut hidden);
                if hidden.as_str() != arguments.as_str() {
                    call.arguments = hidden.into_string();
                }
            }
            // The call will be refused, but observers see its arguments.
            Err(_) => self.text(&mut call.arguments),
        }
        *call != before
    }

    fn outcome(&self, outcome: &mut Outcome) {
        match outcome {
            Outcome::Ok(output) => {
                self.json(&mut output.value);
                self.maybe(&mut output.message);
                let mut work = InflationWork::default();
                output.parts.iter_mut().for_each(|part| self.part(part, &mut work));
                for (mut name, mut value) in std::mem::take(&mut output.extensions) {
                    self.text(&mut name);
                    self.json(&mut value);
                    output.extensions.insert(name, value);
                }
            }
            Outcome::Error(error) => {
                self.text(&mut error.message);
                error.data.iter_mut().for_each(|data| self.json(data));
            }
            Outcome::AskUser(ask) => {
                self.text(&mut ask.question);
                // The state too: without a sealer it goes to the client as it is.
                let parts = [&mut ask.options, &mut ask.answer_schema, &mut ask.state];
                parts.into_iter().flatten().for_each(|part| self.json(part));
            }
            Outcome::Halt(halt) => {
                self.text(&mut halt.reason);
                self.json(&mut halt.result);
            }
        }
    }

    fn part(&self, part: &mut Part, work: &mut InflationWork) {
        match part {
            Part::Text { text } => self.text(text),
            Part::Image(Media { mime_type, data }) | Part::Audio(Media { mime_type, data }) => {
                self.text(mime_type);
                self.bytes(data, work);
            }
            Part::Resource(Resource { uri, mime_type, content }) => {
                self.text(uri);
                self.maybe(mime_type);
                match content {
                    ResourceContent::Text { text } => self.text(text),
                    ResourceContent::Bytes { data } => self.bytes(data, work),
                }
            }
            Part::ResourceLink { uri, name, description, mime_type, .. } => {
                self.text(uri);
                [name, description, mime_type].into_iter().for_each(|text| self.maybe(text));
            }
        }
    }

    fn bytes(&self, data: &mut Vec<u8>, work: &mut InflationWork) {
        if self.0.contains_value(data) {
            *data = self.0.redact(data);
        } else if self.0.inflated(data, work) != Inflated::Clean {
            *data = REPLACEMENT.to_vec();
        }
    }

    fn error(&self, error: &mut ToolError) {
        match error {
            ToolError::HandlerRaised(raised) => {
                self.maybe(&mut raised.panic_message);
                let mut stdout = raised.stdout.take().map(String::from);
                self.maybe(&mut stdout);
                raised.stdout = stdout.map(String::into_boxed_str);
                raised.backtrace.iter_mut().for_each(|name| self.text(name));
            }
            ToolError::InvalidReturn(rule) => self.rule(rule),
            ToolError::EncodingFailed(text) => self.text(text),
            ToolError::Timeout(timeout) => self.maybe(timeout.stdout_mut()),
            ToolError::HandlerExit(_) | ToolError::NotFound => {}
        }
    }

    fn rule(&self, rule: &mut ReturnRule) {
        match rule {
            ReturnRule::NotJson { detail: text, .. }
            | ReturnRule::Policy { detail: text }
            | ReturnRule::Unreadable { detail: text }
            | ReturnRule::ReservedHalt { reason: text } => self.text(text),
            ReturnRule::Schema { faults } => self.faults(faults),
            ReturnRule::TooLarge { .. }
            | ReturnRule::TooManyParts { .. }
            | ReturnRule::StateTooLarge { .. }
            | ReturnRule::EmptyHalt
            | _ => {}
        }
    }

    fn faults(&self, faults: &mut [Fault]) {
        for fault in faults {
            self.text(&mut fault.path);
            self.fault_kind(fault);
            let details = [&mut fault.actual, &mut fault.nearest, &mut fault.hint];
            details.into_iter().for_each(|text| self.maybe(text));
        }
    }

    /// Replaces a kind that has a secret in its values or in its sentence by its sentence,
    /// redacted.
    fn fault_kind(&self, fault: &mut Fault) {
        let message = fault.kind.to_string();
        let is_in_value = serde_json::to_string(&fault.kind)
            .is_ok_and(|values| self.rewritten(&values).is_some());
        if is_in_value || self.0.contains_value(message.as_bytes()) {
            fault.kind = FaultKind::Rule { message: self.redact_text(&message) };
        }
    }

    fn maybe(&self, text: &mut Option<String>) {
        text.iter_mut().for_each(|text| self.text(text));
    }

    fn text(&self, text: &mut String) {
        if self.0.contains_value(text.as_bytes()) {
            *text = self.redact_text(text);
        }
    }

    fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.0.redact(text.as_bytes())).into_owned()
    }

    /// Redacts each string as it is read. A value that spans several strings, or appears only in
    /// the raw text, replaces the whole JSON by one redacted string.
    fn json(&self, json: &mut Json) {
        let is_hidden = |json: &Json| !self.0.contains_value(json.as_str().as_bytes());
        if is_hidden(json) && !json.as_str().contains('\\') {
            return;
        }
        if let Some(text) = self.rewritten(json.as_str()) {
            // Redaction can make two names of members equal, if the tool used names that look
            // redacted. Such text is refused.
            *json = Json::parse(text)
                .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(REPLACEMENT)).into());
        }
        if !is_hidden(json) {
            *json = Value::from(self.redact_text(json.as_str())).into();
        }
    }

    /// Returns valid JSON text with its strings, names and numbers redacted, or `None` if nothing
    /// was found. Reads the text piece by piece, because its tree could take a hundred times the
    /// memory.
    fn rewritten(&self, text: &str) -> Option<String> {
        let (mut written, mut copied, mut read) = (String::new(), 0, 0);
        // The number of redacted names in each object around the current place. Each after the
        // first gets that number as a suffix, so that no member is lost.
        let mut names = Vec::new();
        // If the text already has names that look redacted, starts above every number after a
        // quote.
        let number =
            |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok();
        let is_marked = text.contains(&*String::from_utf8_lossy(REPLACEMENT));
        let largest = || text.split('\'').skip(1).filter_map(number).max();
        let first = if is_marked { largest().unwrap_or(0).saturating_add(1) } else { 0 };
        for scalar in scalars(text) {
            for byte in text[read..scalar.start].bytes() {
                match byte {
                    b'{' => names.push(first),
                    b'}' => drop(names.pop()),
                    _ => {}
                }
            }
            read = scalar.end;
            let Some(mut hidden) = self.scalar(&text[scalar.clone()]) else { continue };
            let is_name = text[read..].trim_ascii_start().starts_with(':');
            if let Some(number) = names.last_mut().filter(|_| is_name) {
                if *number > 0 {
                    hidden.push_str(&format!("'{number}"));
                }
                *number = number.saturating_add(1);
            }
            written.push_str(&text[copied..scalar.start]);
            written.push_str(&Value::from(hidden).to_string());
            copied = read;
        }
        (copied > 0).then(|| written + &text[copied..])
    }

    /// Returns a string or a number of JSON text redacted, or `None` if it contains no value.
    fn scalar(&self, raw: &str) -> Option<String> {
        let plain = raw.trim_matches('"');
        let text: Cow<'_, str> = if plain.contains('\\') {
            serde_json::from_str::<String>(raw).ok()?.into()
        } else {
            plain.into()
        };
        self.0.contains_value(text.as_bytes()).then(|| self.redact_text(&text))
    }
}

impl fmt::Debug for SecretRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretRedactor")
    }
}

#[cfg(test)]
mod tests;
