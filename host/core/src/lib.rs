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
//! Many tools by name: [`Registry`]. Many calls under one policy: [`Runner`], with [`RunOptions`]
//! and [`OnToolError`]. One turn of an agent loop: [`Stepper`]. The formats of model providers:
//! [`Provider`]. Questions that travel through an untrusted client: [`Sealer`]. Tools as closures:
//! [`Tool::native`], and [`Tool::native_blocking`] for closures that block. The crate's `examples/`
//! show each.

// -- words: plain data
mod call;
mod component_kind;
#[doc(hidden)]
pub mod defence;
mod definition;
mod error;
mod event;
mod fence;
mod grants;
mod json;
mod limits;
mod message;
mod outcome;
mod refusal;
mod rights;
mod tool_error;
mod usage;
// -- decisions: pure
mod api_keys;
mod assemble;
mod encode;
pub mod names;
mod policy;
mod rules;
mod schema;
mod statistics;
mod suspicion;
mod view;
// -- time and processors
mod clock;
mod cores;
// -- world: resources that grants give access to
mod directory;
mod egress;
pub mod kv;
mod private;
mod secret;
mod shared_bytes;
mod signals;
mod spawn;
mod store;
// -- engine: the only part that uses wasm
mod engine;
// -- handlers
mod blocking;
mod breaker;
mod handler;
mod middleware;
mod native;
mod patience;
mod retry;
#[cfg(test)]
mod scripted;
mod tool;
mod wasm;
// -- pipe
mod executor;
mod registry;
mod runner;
mod seal;
mod step;
// -- edges
mod provider;
mod worker_process;

pub use api_keys::{ApiKey, ApiKeys, BadDigest, KeyDigest, KnownKey};
pub use assemble::{AssembleError, Assembler, Fragment, OpenCall};
pub use blocking::{BLOCKING_THREADS, BlockingFn, BlockingPool};
pub use breaker::{
    Breaker, BreakerState, DEFAULT_FAILURES, DEFAULT_OPEN_TIME, DEFAULT_SUCCESSES_TO_CLOSE,
};
pub use call::{
    AbortSignal, CallCanceller, CallContext, CallFiles, CallOptions, CallResult, Completion,
    DEFAULT_STOP_GRACE, Resume, ToolCall,
};
pub use clock::{Clock, ManualClock, Sleep, SystemClock};
pub use component_kind::{Command, CommandInput, CommandOutput, ComponentBytes, ComponentKind};
pub use definition::{Checks, Definition, Hints, MAX_NAME, Need};
pub use directory::{TemporaryDirectory, forbidden_root, remove_tree};
pub use egress::{
    Answer, DEFAULT_CONNECTIONS, Egress, Proxy, Resolved, Resolver, Roots, Route, SystemResolver,
};
pub use encode::{EncodeError, EncodeInput, Encoder, JsonEncoder};
pub use engine::{
    Code, Contents, DEFAULT_CACHE_BYTES, DEFAULT_CELLS, DEFAULT_COMPILE_TIME, DEFAULT_COMPILES,
    DEFAULT_LINKED_BYTES, DEFAULT_PANICS, Engine, EngineBuilder, HOST_BYTES, ImportStatus, InUse,
    Inspection, Isolation, MAX_CELLS, MAX_COMPONENT, Module, OnMissingGrant, Optimise, PathUse,
    Placement, Producer, Recorded, Recorder, Section, compile_worker,
};
pub use error::Error;
pub use event::{Event, EventSink, LogLevel, LogSource};
pub use executor::{Executor, Tenant, TreeRoom};
pub use grants::{
    Access, BadRule, BadTarget, DEFAULT_DIRECTORY_BYTES, DEFAULT_DIRECTORY_FILES, Directory,
    GrantKind, Grants, Host, HttpRule, Injection, InvokeRule, KeyRule, Method, Overlay, PathRule,
    Room, SecretGrant, Target, has_metadata_service, is_metadata_service,
};
pub use handler::{
    DEFAULT_CALL_DEPTH, Handler, HandlerFuture, Invocation, MAX_SUB_CALLS, ValidateFuture,
    VisibleFuture,
};
pub use json::{Json, JsonFault, MAX_DEPTH, MAX_NODES};
pub use limits::{
    DEFAULT_ARGUMENTS, DEFAULT_FUEL, DEFAULT_HOST_CALLS, DEFAULT_LOG, DEFAULT_MEMORY,
    DEFAULT_RESULT, DEFAULT_TIMEOUT, Limits,
};
pub use message::{AWAITING_USER, Halted, Message, RunEvent, RunFailure, Settled};
pub use middleware::Middleware;
pub use native::NativeFn;
pub use outcome::{
    Halt, HandlerError, MAX_PARTS, Media, Outcome, Output, Part, Question, RESERVED_HALT_REASONS,
    Resource, ResourceContent,
};
pub use policy::{Failure, OnToolError, Policy, Verdict};
pub use worker_process::{DEFAULT_GRACE, Worker, WorkerProcess, WorkerProcessBuilder};
/// Files that only this user can read and write.
pub mod private_file {
    pub use crate::private::{read, replace};
}
pub use provider::{
    Calls, Converted, Note, Provider, ProviderError, UnreadableCall, agui_events, agui_run_end,
};
pub use refusal::{Fault, FaultKind, LengthUnit, MAX_FAULTS, Refusal, ResumeFault};
pub use registry::{Registry, Toolbox};
pub use retry::{DEFAULT_ATTEMPTS, DEFAULT_MAX_DELAY, MAX_ATTEMPTS, Retry};
pub use rights::{Decision, Denial, Layer, PLACEHOLDER, Request, Rights, Suggestion, toml_text};
pub use runner::{RunOptions, RunOutcome, RunStream, Runner, UnknownTools};
pub use seal::{DEFAULT_SEAL_LIFETIME, MAX_STATE, Sealer};
pub use secret::{
    KnownFuture, MAX_SECRET, MIN_SECRET, Secret, SecretError, SecretFuture, SecretSource,
    StoredSecrets,
};
pub use signals::survive_file_size_limit;
pub use statistics::{LastError, Statistics};
pub use step::{
    AbortStatus, DEFAULT_CONTEXT_TURNS, DEFAULT_MAX_ERRORS, DEFAULT_SOFT_WARN_AT,
    DEFAULT_STEP_TIMEOUT, Deliberate, FunctionResponse, HistoryEntry, MIN_STEP_TIMEOUT, RawCall,
    STEP_TIMEOUT_VARIABLE, Step, StepConfig, StepEvent, Stepper, Turn, TurnMemory,
};
pub use suspicion::{Suspicion, SuspicionKind, is_unseen};
pub use tool::Tool;
pub use tool_error::{
    Awaited, Exit, Frame, LimitHit, LimitKind, Raised, RaisedKind, Reason, ReturnRule, Timeout,
    ToolError,
};
pub use usage::Usage;
pub use view::ResultView;
pub use wasm::Component;
