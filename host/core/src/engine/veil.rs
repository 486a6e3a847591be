//! What hides the secrets of one call from all but the tool: nothing that the tool says leaves with one of them.
//!
//! In: what a tool was granted, and what it says. Out: the same with a mark in place of each value, in events, results and
//! errors alike; JSON stays JSON.
//! Invariants: made only for tools that were granted a secret, so that no other pays for it; a value that a call is given
//! later than at its beginning is known from then on.
//! Not here: the forms of a value ([`Redactor`]).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::RwLock;
use serde_json::{Map, Value};

use super::world::World;
use crate::call::CallResult;
use crate::defence::{Defence, stands};
use crate::egress::{Inflated, MARK, Redactor, Redactors};
use crate::event::Event;
use crate::handler::Invocation;
use crate::json::Json;
use crate::outcome::{Media, Outcome, Part, Resource, ResourceContent};
use crate::refusal::{Fault, FaultKind, Refusal};
use crate::rights::Rights;
use crate::secret::Secret;
use crate::tool_error::{Exit, ReturnRule, ToolError};

/// Hides the secrets of one call.
pub(super) struct Veil {
    redactors: Arc<Redactors>,
    known: RwLock<Known>,
}

#[derive(Clone)]
struct Known {
    named: Vec<(String, Secret)>,
    redactor: Redactor,
}

impl Veil {
    /// Whether the tool was granted a secret.
    pub(super) fn is_needed(rights: &Rights) -> bool {
        let granted = rights.granted();
        !granted.secrets.is_empty() || !granted.reveal.is_empty()
    }

    /// Made before the tool's call: it may have kept what an earlier one was given.
    ///
    /// # Errors
    /// [`ToolError`] where there are too many values to hide.
    pub(super) async fn over(world: &World, invocation: &Invocation, rights: &Rights) -> Result<Arc<Self>, ToolError> {
        let granted = rights.granted();
        let names: BTreeSet<_> = granted.secrets.keys().chain(&granted.reveal).collect();
        let tenant = invocation.context.tenant.as_deref();
        // One that is not to be had now is asked for again when it is used.
        let found =
            names.into_iter().map(async |name| Some((name.clone(), world.secrets.secret(tenant, name).await.ok()?)));
        let named: Vec<_> = join_all(found).await.into_iter().flatten().collect();
        let redactors = Arc::clone(&world.redactors);
        let Some(redactor) = redactors.of(values(&named)).await else {
            tracing::error!("the tool was granted more secrets than can be hidden");
            return Err(ToolError::HandlerExit(Exit::Died));
        };
        let veil = Arc::new(Self { redactors, known: RwLock::new(Known { named, redactor }) });
        let over_events = Arc::clone(&veil);
        if stands(Defence::ToldSecrets) {
            invocation.events.veil(move |event| over_events.event(event));
        }
        Ok(veil)
    }

    /// What hides them now.
    pub(super) fn redactor(&self) -> Redactor {
        self.known().redactor
    }

    /// The secrets that the call may know, by name.
    pub(super) fn named(&self) -> Vec<(String, Secret)> {
        self.known().named
    }

    fn known(&self) -> Known {
        self.known.read().clone()
    }

    /// Hides one that is about to be used, if it is not yet hidden. False where it cannot be.
    #[must_use]
    pub(super) async fn learn(&self, name: &str, value: &Secret) -> bool {
        loop {
            let Known { mut named, redactor } = self.known();
            if redactor.knows(value) {
                return true;
            }
            let before = named.len();
            named.push((name.to_owned(), value.clone()));
            let Some(redactor) = self.redactors.of(values(&named)).await else { return false };
            let mut known = self.known.write();
            // Another may have been learned meanwhile: neither is forgotten for the other.
            if known.named.len() == before {
                *known = Known { named, redactor };
                return true;
            }
        }
    }

    /// How a cell ended, without the secrets.
    pub(super) fn answer(&self, answer: Result<CallResult, ToolError>) -> Result<CallResult, ToolError> {
        match self.result(answer.unwrap_or_else(CallResult::ToolError)) {
            CallResult::ToolError(error) => Err(error),
            result @ (CallResult::Outcome(_) | CallResult::Refusal(_)) => Ok(result),
        }
    }

    fn result(&self, mut result: CallResult) -> CallResult {
        if !stands(Defence::ReturnedSecrets) {
            return result;
        }
        let veiled = Veiled(self.redactor());
        match &mut result {
            CallResult::Outcome(outcome) => veiled.outcome(outcome),
            CallResult::ToolError(error) => veiled.error(error),
            CallResult::Refusal(Refusal::InvalidArguments(faults) | Refusal::InvalidAnswer(faults)) => {
                veiled.faults(faults)
            }
            CallResult::Refusal(_) => {}
        }
        result
    }

    fn event(&self, mut event: Event) -> Event {
        let veiled = Veiled(self.redactor());
        match &mut event {
            Event::Progress { message, .. } => veiled.maybe(message),
            Event::Log { message, .. } => veiled.text(message),
            Event::Denied { denial, .. } => {
                veiled.text(&mut denial.request);
                veiled.maybe(&mut denial.grant);
            }
            // The one came before the tool, the other is made of a result.
            Event::Started { .. } | Event::Completed { .. } => {}
        }
        event
    }
}

fn values(named: &[(String, Secret)]) -> Vec<Secret> {
    named.iter().map(|(_, value)| value.clone()).collect()
}

/// Hides values in what a tool says.
struct Veiled(Redactor);

impl Veiled {
    fn outcome(&self, outcome: &mut Outcome) {
        match outcome {
            Outcome::Ok(output) => {
                self.json(&mut output.value);
                self.maybe(&mut output.message);
                output.parts.iter_mut().for_each(|part| self.part(part));
                let extensions = std::mem::take(&mut output.extensions);
                output.extensions = extensions
                    .into_iter()
                    .map(|(mut name, mut value)| {
                        self.text(&mut name);
                        self.json(&mut value);
                        (name, value)
                    })
                    .collect();
            }
            Outcome::Error(error) => {
                self.text(&mut error.message);
                error.data.iter_mut().for_each(|data| self.json(data));
            }
            Outcome::AskUser(ask) => {
                self.text(&mut ask.question);
                // The state too: without a sealer it goes through the client's hands as it is.
                let parts = [&mut ask.options, &mut ask.answer_schema, &mut ask.state];
                parts.into_iter().flatten().for_each(|part| self.json(part));
            }
            Outcome::Halt(halt) => {
                self.text(&mut halt.reason);
                self.json(&mut halt.result);
            }
        }
    }

    fn part(&self, part: &mut Part) {
        match part {
            Part::Text { text } => self.text(text),
            Part::Image(Media { mime_type, data }) | Part::Audio(Media { mime_type, data }) => {
                self.text(mime_type);
                self.bytes(data);
            }
            Part::Resource(Resource { uri, mime_type, content }) => {
                self.text(uri);
                self.maybe(mime_type);
                match content {
                    ResourceContent::Text { text } => self.text(text),
                    ResourceContent::Bytes { data } => self.bytes(data),
                }
            }
            Part::ResourceLink { uri, name, description, mime_type, .. } => {
                self.text(uri);
                [name, description, mime_type].into_iter().for_each(|text| self.maybe(text));
            }
        }
    }

    fn bytes(&self, data: &mut Vec<u8>) {
        if self.0.finds(data) {
            *data = self.0.redact(data);
        } else if self.0.inflated(data) != Inflated::Clean {
            *data = MARK.to_vec();
        }
    }

    fn error(&self, error: &mut ToolError) {
        match error {
            ToolError::HandlerRaised(raised) => {
                self.maybe(&mut raised.panic_message);
                raised.backtrace.iter_mut().for_each(|name| self.text(name));
            }
            ToolError::InvalidReturn(rule) => self.rule(rule),
            ToolError::EncodingFailed(text) => self.text(text),
            ToolError::HandlerExit(_) | ToolError::Timeout(_) | ToolError::NotFound => {}
        }
    }

    fn rule(&self, rule: &mut ReturnRule) {
        match rule {
            ReturnRule::NotJson { detail, .. } | ReturnRule::Policy { detail } | ReturnRule::Unreadable { detail } => {
                self.text(detail);
            }
            ReturnRule::ReservedHalt { reason } => self.text(reason),
            ReturnRule::Schema { faults } => self.faults(faults),
            ReturnRule::TooLarge { .. }
            | ReturnRule::TooManyParts { .. }
            | ReturnRule::StateTooLarge { .. }
            | ReturnRule::EmptyHalt => {}
        }
    }

    fn faults(&self, faults: &mut [Fault]) {
        for fault in faults {
            self.text(&mut fault.path);
            self.fault_kind(fault);
            self.maybe(&mut fault.got);
            self.maybe(&mut fault.nearest);
            self.maybe(&mut fault.hint);
        }
    }

    /// A kind with a secret in its values or in its sentence becomes its sentence, redacted.
    fn fault_kind(&self, fault: &mut Fault) {
        let message = fault.kind.to_string();
        let is_in_value = serde_json::to_value(&fault.kind).is_ok_and(|mut values| self.value(&mut values));
        if is_in_value || self.0.finds(message.as_bytes()) {
            fault.kind = FaultKind::Rule { message: self.anew(&message) };
        }
    }

    fn maybe(&self, text: &mut Option<String>) {
        text.iter_mut().for_each(|text| self.text(text));
    }

    fn text(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redacted(text) {
            *text = redacted;
        }
    }

    fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.0.finds(text.as_bytes()) { self.anew(text).into() } else { text.into() }
    }

    fn anew(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.0.redact(text.as_bytes())).into_owned()
    }

    /// In each string as it is read. What stands in several at once, or in how the whole is written, goes as a whole.
    fn json(&self, json: &mut Json) {
        let is_hidden = |json: &Json| !self.0.finds(json.as_str().as_bytes());
        if is_hidden(json) && !json.as_str().contains('\\') {
            return;
        }
        let mut value = json.to_exact_value();
        if self.value(&mut value) {
            *json = value.into();
        }
        if !is_hidden(json) {
            *json = Value::from(self.anew(json.as_str())).into();
        }
    }

    /// Whether anything was hidden.
    fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.redacted(text) {
                Cow::Owned(redacted) => {
                    *text = redacted;
                    true
                }
                Cow::Borrowed(_) => false,
            },
            Value::Array(items) => items.iter_mut().filter_map(|item| self.value(item).then_some(())).count() > 0,
            Value::Object(members) => {
                let any = members.values_mut().filter_map(|member| self.value(member).then_some(())).count() > 0;
                let is_named = members.keys().any(|name| self.0.finds(name.as_bytes()));
                if is_named {
                    *members = self.renamed(std::mem::take(members));
                }
                any || is_named
            }
            Value::Number(number) if self.0.finds(number.to_string().as_bytes()) => {
                *value = Value::from(self.anew(&number.to_string()));
                true
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => false,
        }
    }

    /// No member is lost, however they are called.
    fn renamed(&self, members: Map<String, Value>) -> Map<String, Value> {
        let mut renamed = Map::new();
        for (mut name, member) in members {
            self.text(&mut name);
            while renamed.contains_key(&name) {
                name.push('\'');
            }
            renamed.insert(name, member);
        }
        renamed
    }
}

#[cfg(test)]
mod tests;
