//! The context of a call: its ids, tenant, time limit, attempt, and the answer to an earlier
//! question.
//!
//! Invariants: a field that the caller did not give is absent; there are no invented defaults.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::json::Json;
use crate::outcome::Failure;

/// The context of a call. Take it as the last parameter: `context: &Context`.
///
/// In native tests, [`Context::default`] is a first attempt without ids and without a time limit,
/// and the methods `with_…` add the rest.
///
/// ```
/// use toolcell_guest::{Context, json};
/// let context = Context::default().with_tenant("acme").with_answer("yes").with_state(json!({ "step": 2 }));
/// assert_eq!(context.tenant(), Some("acme"));
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) call_id: String,
    pub(crate) session_id: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) thread_id: Option<String>,
    pub(crate) run_id: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) metadata: Option<String>,
    pub(crate) remaining: Duration,
    pub(crate) attempt: u32,
    pub(crate) resume: Option<Resume>,
    pub(crate) extensions: Vec<(String, String)>,
}

/// The answer to a question that an earlier call asked, and the state that call left, both as JSON
/// text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resume {
    pub(crate) answer: String,
    pub(crate) state: Option<String>,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            call_id: String::new(),
            session_id: None,
            request_id: None,
            thread_id: None,
            run_id: None,
            tenant: None,
            metadata: None,
            remaining: Duration::MAX,
            attempt: 1,
            resume: None,
            extensions: Vec::new(),
        }
    }
}

impl Context {
    /// The id of this call, as the model's provider sent it.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The id of the caller's session.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// The id of the caller's request.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The id of the conversation.
    pub fn thread_id(&self) -> Option<&str> {
        self.thread_id.as_deref()
    }

    /// The id of the run within the conversation.
    pub fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }

    /// The tenant on whose behalf the call is made.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Free JSON that the caller attached.
    pub fn metadata(&self) -> Option<Value> {
        serde_json::from_str(self.metadata.as_deref()?).ok()
    }

    /// The caller's free JSON, deserialized to a type. `None` if there is none.
    ///
    /// # Errors
    /// The JSON does not have the shape of the type.
    pub fn metadata_as<T: DeserializeOwned>(&self) -> Option<Result<T, Failure>> {
        Some(typed("caller's metadata", self.metadata.as_deref()?))
    }

    /// The wall time that remained for this call when it started. For the time that remains now,
    /// see [`budget::remaining`](crate::budget::remaining).
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// The number of the attempt, 1 for the first.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The person's answer to the [`Question`](crate::Question) of an earlier call. `None` in a
    /// first call.
    ///
    /// # Errors
    /// The answer does not have the shape of the type.
    pub fn answer<T: DeserializeOwned>(&self) -> Option<Result<T, Failure>> {
        Some(typed("answer", &self.resume.as_ref()?.answer))
    }

    /// The state that the earlier call left with [`Question::state`](crate::Question::state).
    /// `None` in a first call.
    ///
    /// # Errors
    /// The state does not have the shape of the type.
    pub fn state<T: DeserializeOwned>(&self) -> Option<Result<T, Failure>> {
        Some(typed("state of the earlier call", self.resume.as_ref()?.state.as_deref()?))
    }

    /// The arguments of the call whose visibility `visible` decides. They may not fit the tool's
    /// parameters. `None` when tools are listed, and in the tool itself, which receives its
    /// arguments as parameters.
    pub fn arguments(&self) -> Option<Value> {
        self.extension("arguments")
    }

    /// A field of the context that this version of the crate has no method for.
    pub fn extension(&self, name: &str) -> Option<Value> {
        let (_, json) = self.extensions.iter().find(|(known, _)| known == name)?;
        serde_json::from_str(json).ok()
    }
}

/// Builder methods for native tests.
impl Context {
    /// Sets the call id.
    #[must_use]
    pub fn with_call_id(mut self, id: impl Into<String>) -> Self {
        self.call_id = id.into();
        self
    }

    /// Sets the session.
    #[must_use]
    pub fn with_session_id(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Sets the request.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.request_id = Some(id.into());
        self
    }

    /// Sets the conversation.
    #[must_use]
    pub fn with_thread_id(mut self, id: impl Into<String>) -> Self {
        self.thread_id = Some(id.into());
        self
    }

    /// Sets the run.
    #[must_use]
    pub fn with_run_id(mut self, id: impl Into<String>) -> Self {
        self.run_id = Some(id.into());
        self
    }

    /// Sets the tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets the metadata. A value that cannot be written as JSON sets none.
    #[must_use]
    pub fn with_metadata(mut self, metadata: impl Serialize) -> Self {
        self.metadata = Json::of(&metadata).text().ok();
        self
    }

    /// Sets the remaining time.
    #[must_use]
    pub fn with_remaining(mut self, remaining: Duration) -> Self {
        self.remaining = remaining;
        self
    }

    /// Sets the number of the attempt.
    #[must_use]
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Makes it the context of a call that resumes with this answer. A value that cannot be written
    /// as JSON becomes null.
    #[must_use]
    pub fn with_answer(mut self, answer: impl Serialize) -> Self {
        let answer = Json::of(&answer).text().unwrap_or_else(|_| "null".to_owned());
        self.resume.get_or_insert_default().answer = answer;
        self
    }

    /// Makes it the context of a call that resumes with this state. The answer is null unless
    /// [`Context::with_answer`] sets one.
    #[must_use]
    pub fn with_state(mut self, state: impl Serialize) -> Self {
        let state = Json::of(&state).text().ok();
        self.resume
            .get_or_insert_with(|| Resume { answer: "null".to_owned(), state: None })
            .state = state;
        self
    }

    /// Sets the arguments of the call, for `visible`.
    #[must_use]
    pub fn with_arguments(self, arguments: impl Serialize) -> Self {
        self.with_extension("arguments", arguments)
    }

    /// Adds an extension. A value that cannot be written as JSON adds none.
    #[must_use]
    pub fn with_extension(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        if let Ok(json) = Json::of(&value).text() {
            self.extensions.push((name.into(), json));
        }
        self
    }
}

fn typed<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, Failure> {
    crate::json::read(json)
        .map_err(|error| Failure::new(format!("the {what} has an unexpected shape: {error}")))
}
