//! Where a call comes from, as its handler sees it.
//!
//! Invariant: a field that the caller did not give is absent; nothing is invented.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::json::Json;
use crate::outcome::Failure;

/// Where a call comes from. Take it as the last parameter: `context: &Context`.
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

/// The answer to a question that an earlier call asked, and the state it left; both as JSON text.
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

    /// The caller's session.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// The caller's request.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The conversation.
    pub fn thread_id(&self) -> Option<&str> {
        self.thread_id.as_deref()
    }

    /// The run within the conversation.
    pub fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }

    /// The tenant on whose behalf the call is made.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// The caller's free JSON.
    pub fn metadata(&self) -> Option<Value> {
        serde_json::from_str(self.metadata.as_deref()?).ok()
    }

    /// The caller's free JSON as a type.
    ///
    /// # Errors
    /// The JSON is there and has another shape.
    pub fn metadata_as<T: DeserializeOwned>(&self) -> Option<Result<T, Failure>> {
        Some(typed("caller's metadata", self.metadata.as_deref()?))
    }

    /// Wall time that was left for this call when it started. See
    /// [`budget::remaining`](crate::budget::remaining) for what is left now.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// 1 for the first attempt.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What the person answered to the [`Question`](crate::Question) of an earlier call. None in a
    /// first call.
    ///
    /// # Errors
    /// There is an answer of another shape.
    pub fn answer<T: DeserializeOwned>(&self) -> Option<Result<T, Failure>> {
        Some(typed("answer", &self.resume.as_ref()?.answer))
    }

    /// What the asking call left with [`Question::state`](crate::Question::state). None in a first
    /// call.
    ///
    /// # Errors
    /// There is a state of another shape.
    pub fn state<T: DeserializeOwned>(&self) -> Option<Result<T, Failure>> {
        Some(typed("state of the earlier call", self.resume.as_ref()?.state.as_deref()?))
    }

    /// The arguments of the call that `visible` is asked about. They may not fit the tool's
    /// parameters. None for a list, and none in the tool itself, which has them as its own
    /// parameters.
    pub fn arguments(&self) -> Option<Value> {
        self.extension("arguments")
    }

    /// A field of the context that this version of the crate has no name for.
    pub fn extension(&self, name: &str) -> Option<Value> {
        let (_, json) = self.extensions.iter().find(|(known, _)| known == name)?;
        serde_json::from_str(json).ok()
    }
}

/// For native tests.
impl Context {
    /// With this call id.
    #[must_use]
    pub fn with_call_id(mut self, id: impl Into<String>) -> Self {
        self.call_id = id.into();
        self
    }

    /// With this session.
    #[must_use]
    pub fn with_session_id(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// With this request.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.request_id = Some(id.into());
        self
    }

    /// With this conversation.
    #[must_use]
    pub fn with_thread_id(mut self, id: impl Into<String>) -> Self {
        self.thread_id = Some(id.into());
        self
    }

    /// With this run.
    #[must_use]
    pub fn with_run_id(mut self, id: impl Into<String>) -> Self {
        self.run_id = Some(id.into());
        self
    }

    /// With this tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// With this metadata. A value that cannot be written as JSON leaves none.
    #[must_use]
    pub fn with_metadata(mut self, metadata: impl Serialize) -> Self {
        self.metadata = Json::of(&metadata).text().ok();
        self
    }

    /// With this much time.
    #[must_use]
    pub fn with_remaining(mut self, remaining: Duration) -> Self {
        self.remaining = remaining;
        self
    }

    /// As the n-th attempt.
    #[must_use]
    pub fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// As a call that resumes after this answer. A value that cannot be written as JSON becomes
    /// null.
    #[must_use]
    pub fn with_answer(mut self, answer: impl Serialize) -> Self {
        let answer = Json::of(&answer).text().unwrap_or_else(|_| "null".to_owned());
        self.resume.get_or_insert_default().answer = answer;
        self
    }

    /// As a call that resumes with this state; the answer is null unless [`Context::with_answer`]
    /// gives one.
    #[must_use]
    pub fn with_state(mut self, state: impl Serialize) -> Self {
        let state = Json::of(&state).text().ok();
        self.resume
            .get_or_insert_with(|| Resume { answer: "null".to_owned(), state: None })
            .state = state;
        self
    }

    /// As a call with these arguments, for `visible`.
    #[must_use]
    pub fn with_arguments(self, arguments: impl Serialize) -> Self {
        self.with_extension("arguments", arguments)
    }

    /// With this extension. A value that cannot be written as JSON adds none.
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
