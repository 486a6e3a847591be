//! Runs the tools of AI agents in sandboxes: a tool is an untrusted WebAssembly component, and each
//! call runs in its own *cell*, a fresh store with fuel, a deadline, a memory bound, and only the
//! rights that were granted.
//!
//! ```text
//! ToolCall → resolve → validate → admit → cell → guest → outcome → Completion
//!                └────────┴─────────┴───────┴───────┴── one event sink all along
//! ```
//!
//! [`Executor::call`] cannot fail: a failed *call* is part of its [`Completion`]; a failed *set-up*
//! is an [`Error`].
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use toolcell::{CallOptions, Component, Engine, Executor, ToolCall};
//!
//! let engine = Engine::builder().build()?;
//! let component = Component::load(&engine, std::fs::read("calculator.wasm")?).await?;
//! let call = ToolCall::new("call-1", "calculator", r#"{"expression": "6 * 7"}"#);
//! let completion = Executor::new().call(component.tool("calculator")?, call, CallOptions::default()).await;
//! println!("{:?} used {:?}", completion.result, completion.usage);
//! # Ok(()) }
//! ```
//!
//! The library reads no command line and no configuration file. Of the environment it uses only
//! `TMPDIR`, the place of temporary directories.
//!
//! Many tools by name: [`Registry`]. Many calls under one policy: [`Runner`], with [`RunOptions`]
//! and [`OnToolError`]. One turn of an agent loop: [`Stepper`]. The formats of model providers:
//! [`Provider`]. Questions that travel through an untrusted client: [`Sealer`]. Tools as closures:
//! [`Tool::native`], and [`Tool::native_blocking`] for closures that block. The crate's `examples/`
//! show each.

// -- the meaning of a call: words, grants and their decision, schemas, messages
mod contract;
// -- the formats of model providers
mod provider;
// -- the operating system
mod os;
// -- what tenants share, and each one's part of it
mod tenant;
// -- values of secrets, and their removal
mod secrets;
// -- resources that grants give access to
mod capability;
// -- tools and their handlers
mod tool;
// -- components and cells: the only part that uses wasm
mod engine;
// -- sealed states of questions
mod seal;
// -- one call
mod executor;
// -- many calls
mod run;
// -- one turn of an agent loop
mod step;
// -- tools in a process of their own
mod process;

pub use capability::kv;
#[doc(hidden)]
pub use contract::controls;
pub use contract::names;

pub use capability::files::{TemporaryDirectory, forbidden_root, remove_tree};
pub use capability::http::{
    Answer, DEFAULT_CONNECTIONS, Egress, Proxy, Resolved, Resolver, Roots, Route, SystemResolver,
};
pub use contract::call::{
    AbortSignal, CallCanceller, CallContext, CallFiles, CallOptions, CallResult, Completion,
    DEFAULT_STOP_GRACE, Resume, ToolCall,
};
pub use contract::definition::{Checks, Definition, Hints, MAX_NAME, Need};
pub use contract::error::Error;
pub use contract::event::{Event, EventSink, LogLevel, LogSource};
pub use contract::grants::{
    Access, BadRule, BadTarget, DEFAULT_DIRECTORY_BYTES, DEFAULT_DIRECTORY_FILES, Directory,
    GrantKind, Grants, Host, HttpRule, Injection, InvokeRule, KeyRule, Method, Overlay, PathRule,
    Room, SecretGrant, Target, has_metadata_service, is_metadata_service,
};
pub use contract::json::{Json, JsonFault, MAX_DEPTH, MAX_NODES};
pub use contract::limits::{
    DEFAULT_ARGUMENTS, DEFAULT_FUEL, DEFAULT_HOST_CALLS, DEFAULT_LOG, DEFAULT_MEMORY,
    DEFAULT_RESULT, DEFAULT_TIMEOUT, Limits,
};
pub use contract::message::encode::{EncodeError, EncodeInput, Encoder, JsonEncoder};
pub use contract::message::failure::Failure;
pub use contract::message::{AWAITING_USER, Halted, Message, RunEvent, RunFailure, Settled};
pub use contract::outcome::{
    Halt, HandlerError, MAX_PARTS, Media, Outcome, Output, Part, Question, RESERVED_HALT_REASONS,
    Resource, ResourceContent,
};
pub use engine::adapt::component_kind::{
    Command, CommandInput, CommandOutput, ComponentBytes, ComponentKind,
};
pub use engine::{
    Code, Contents, DEFAULT_CACHE_BYTES, DEFAULT_CELLS, DEFAULT_COMPILE_TIME, DEFAULT_LINKED_BYTES,
    DEFAULT_PANICS, Engine, EngineBuilder, HOST_BYTES, ImportStatus, InUse, Inspection, Isolation,
    MAX_CELLS, MAX_COMPONENT, Module, OnMissingGrant, Optimise, PathUse, Placement, Producer,
    Recorded, Recorder, Section, compile_worker,
};
pub use executor::{Executor, TreeRoom};
pub use os::clock::{Clock, ManualClock, Sleep, SystemClock};
pub use process::{DEFAULT_GRACE, Worker, WorkerProcess, WorkerProcessBuilder};
pub use provider::assemble::{AssembleError, Assembler, Fragment, OpenCall};
pub use run::policy::{OnToolError, Policy, Verdict};
pub use tenant::Tenant;
pub use tenant::api_keys::{ApiKey, ApiKeys, BadDigest, KeyDigest, KnownKey};
pub use tenant::compile_quota::DEFAULT_COMPILES;
pub use tool::blocking::{BLOCKING_THREADS, BlockingFn, BlockingPool};
pub use tool::breaker::{
    Breaker, BreakerState, DEFAULT_FAILURES, DEFAULT_OPEN_TIME, DEFAULT_SUCCESSES_TO_CLOSE,
};
pub use tool::handler::{
    DEFAULT_CALL_DEPTH, Handler, HandlerFuture, Invocation, MAX_SUB_CALLS, ValidateFuture,
    VisibleFuture,
};
pub use tool::middleware::Middleware;
pub use tool::native::NativeFn;
/// Files that only this user can read and write.
pub mod private_file {
    pub use crate::os::private::{read, replace};
}
pub use contract::call::usage::Usage;
pub use contract::definition::suspicion::{Suspicion, SuspicionKind, is_unseen};
pub use contract::grants::rights::{
    Decision, Denial, Layer, PLACEHOLDER, Request, Rights, Suggestion, toml_text,
};
pub use contract::message::view::ResultView;
pub use contract::outcome::refusal::{
    Fault, FaultKind, LengthUnit, MAX_FAULTS, Refusal, ResumeFault,
};
pub use contract::outcome::tool_error::{
    Awaited, Exit, Frame, LimitHit, LimitKind, Raised, RaisedKind, Reason, ReturnRule, Timeout,
    ToolError,
};
pub use engine::component::Component;
pub use os::signals::survive_file_size_limit;
pub use provider::{
    Calls, Converted, Note, Provider, ProviderError, UnreadableCall, agui_events, agui_run_end,
};
pub use run::registry::{Registry, Toolbox};
pub use run::runner::{RunOptions, RunOutcome, RunStream, Runner, UnknownTools};
pub use seal::{DEFAULT_SEAL_LIFETIME, MAX_STATE, Sealer};
pub use secrets::secret::{
    KnownFuture, MAX_SECRET, MIN_SECRET, Secret, SecretError, SecretFuture, SecretSource,
    StoredSecrets,
};
pub use step::{
    AbortStatus, DEFAULT_CONTEXT_TURNS, DEFAULT_MAX_ERRORS, DEFAULT_SOFT_WARN_AT,
    DEFAULT_STEP_TIMEOUT, Deliberate, FunctionResponse, HistoryEntry, MIN_STEP_TIMEOUT, RawCall,
    STEP_TIMEOUT_VARIABLE, Step, StepConfig, StepEvent, Stepper, Turn, TurnMemory,
};
pub use tool::Tool;
pub use tool::retry::{DEFAULT_ATTEMPTS, DEFAULT_MAX_DELAY, MAX_ATTEMPTS, Retry};
pub use tool::statistics::{LastError, Statistics};
