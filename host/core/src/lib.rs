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
    Answer, Egress, Proxy, Resolved, Resolver, Roots, Route, SystemResolver,
};
pub use contract::call::{
    AbortSignal, CallCanceller, CallContext, CallFiles, CallOptions, CallResult, Completion,
    Resume, ToolCall,
};
pub use contract::definition::{Checks, Definition, Hints, Need};
pub use contract::error::Error;
pub use contract::event::{Event, EventSink, LogLevel, LogSource};
pub use contract::grants::{
    Access, BadRule, BadTarget, Directory, GrantKind, Grants, Host, HttpRule, Injection,
    InvokeRule, KeyRule, Method, Overlay, PathRule, Room, SecretGrant, Target,
    has_metadata_service, is_metadata_service,
};
pub use contract::json::{Json, JsonFault};
pub use contract::limits::Limits;
pub use contract::message::encode::{EncodeError, EncodeInput, Encoder, JsonEncoder};
pub use contract::message::failure::Failure;
pub use contract::message::{Halted, Message, RunEvent, RunFailure, Settled};
pub use contract::outcome::{
    Halt, HandlerError, Media, Outcome, Output, Part, Question, Resource, ResourceContent,
};
pub use engine::adapt::component_kind::{
    Command, CommandInput, CommandOutput, ComponentBytes, ComponentKind,
};
pub use engine::{
    Code, Contents, Engine, EngineBuilder, ImportStatus, InUse, Inspection, Isolation, Module,
    OnMissingGrant, Optimise, PathUse, Placement, Producer, Recorded, Recorder, Section,
    compile_worker,
};
pub use executor::{Executor, TreeRoom};
pub use os::clock::{Clock, ManualClock, Sleep, SystemClock};
pub use process::{Worker, WorkerProcess, WorkerProcessBuilder};
pub use provider::assemble::{AssembleError, Assembler, Fragment, OpenCall};
pub use run::policy::{OnToolError, Policy, Verdict};
pub use tenant::Tenant;
pub use tenant::api_keys::{ApiKey, ApiKeys, BadDigest, KeyDigest, KnownKey};
pub use tool::blocking::{BlockingFn, BlockingPool};
pub use tool::breaker::{Breaker, BreakerState};
pub use tool::handler::{Handler, HandlerFuture, Invocation, ValidateFuture, VisibleFuture};
pub use tool::middleware::Middleware;
pub use tool::native::NativeFn;
/// Files that only this user can read and write.
pub mod private_file {
    pub use crate::os::private::{read, replace};
}
pub use contract::call::usage::Usage;
pub use contract::definition::suspicion::{Suspicion, SuspicionKind, is_unseen};
pub use contract::grants::rights::{
    Decision, Denial, Layer, Request, Rights, Suggestion, toml_text,
};
pub use contract::message::view::ResultView;
pub use contract::outcome::refusal::{Fault, FaultKind, LengthUnit, Refusal, ResumeFault};
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
pub use seal::Sealer;
pub use secrets::secret::{
    KnownFuture, Secret, SecretError, SecretFuture, SecretSource, StoredSecrets,
};
pub use step::{
    AbortStatus, Deliberate, FunctionResponse, HistoryEntry, RawCall, Step, StepConfig, StepEvent,
    Stepper, Turn, TurnMemory,
};
pub use tool::Tool;
pub use tool::retry::Retry;
pub use tool::statistics::{LastError, Statistics};
