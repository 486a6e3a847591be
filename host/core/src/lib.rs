//! Runs the tools of AI agents in sandboxes. A tool is an untrusted WebAssembly component. Each
//! call runs in its own *cell*: a new instance with fuel, a deadline, a memory bound, and only the
//! rights that you granted. Rust closures can be tools, too.
//!
//! ```text
//!  bytes of a component                                    answer of a model
//!          │ Engine                                              │ Provider
//!          ▼                                                     ▼
//!  Component, with Grants ──► Tool ──► Registry               ToolCall
//!                              ▲          │                      │
//!                           closure       ▼                      ▼
//!                                      Stepper ──► Runner ──► Executor, with Limits and Tenant
//!                                  (one turn)   (many calls)     │ validate, admit
//!                                                                ▼
//!                     Events, from start to end ◄──────── cell: one call
//!                                                                │
//!                                                                ▼
//!                           Completion: Outcome, ToolError or Refusal, and Usage
//! ```
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use toolcell::{CallOptions, Component, Engine, Executor, ToolCall};
//!
//! let engine = Engine::builder().build()?;
//! let component = Component::load(&engine, std::fs::read("calculator.wasm")?).await?;
//! let call = ToolCall::new("call-1", "calculator", r#"{"expression": "6 * 7"}"#);
//! let tool = component.tool("calculator")?;
//! let completion = Executor::new().call(tool, call, CallOptions::default()).await;
//! println!("{:?} used {:?}", completion.result, completion.usage);
//! # Ok(()) }
//! ```
//!
//! # Concepts
//!
//! 1. [`Engine`]: compiles components and runs their cells. Create one for each process.
//! 2. [`Component`]: a WebAssembly component, validated, compiled and queried for its tools.
//! 3. [`Tool`]: a [`Definition`] for the model, and the code that answers: a component's, or a
//!    closure ([`Tool::native`]). Module [`tool`] has retries, circuit breakers and middleware.
//! 4. [`Grants`]: the rights of a component. The default grants nothing; an [`Overlay`] only
//!    narrows. Modules [`grants`], [`http`], [`files`], [`kv`] and [`secrets`] have the parts.
//! 5. [`Limits`]: fuel, time, memory and sizes of one call. They are always set.
//! 6. [`Tenant`]: limits, an overlay, the tools and a quota of one customer. A
//!    [`WorkerProcess`](process::WorkerProcess) keeps its tools in a process of their own.
//! 7. [`ToolCall`]: an id, a tool's name, and arguments as the model wrote them. [`CallOptions`]
//!    have the [`CallContext`], limits and an [`AbortSignal`].
//! 8. [`Executor`]: makes one call. It never fails: a failed call is part of its completion.
//! 9. Cell: a new instance for each call. A call finds nothing of another call in it.
//! 10. [`Completion`]: the [`CallResult`] and the [`Usage`]. The result is an [`Outcome`] of the
//!     tool, a [`ToolError`] if it gave none, or a [`Refusal`] of the host.
//! 11. [`Question`]: an outcome that asks the user. A [`Sealer`] lets its state travel through an
//!     untrusted client.
//! 12. [`Event`]: the start of a call, its progress, logs and denials, and its end. An
//!     [`EventSink`] receives them.
//! 13. [`Registry`] and [`Runner`]: many tools by name, and many calls under one policy for errors
//!     ([`OnToolError`]).
//! 14. [`Stepper`]: calls of an agent loop, one [`Turn`] at a time.
//! 15. [`Provider`]: definitions, calls and results in the formats of model providers.
//!
//! An [`Error`] is a failed *set-up*. The crate's `examples/` show each concept.
//!
//! # Requirements
//!
//! Only Linux is supported: elsewhere the crate does not compile.
//!
//! The futures of this library, such as those of [`Component::load`] and [`Executor::call`], need
//! no tokio runtime: the library has its own threads and timers, and any executor can poll them.
//! With tokio, its feature `rt` is enough. There are two exceptions: an async closure that uses
//! tokio needs a runtime, because it runs in the task of the caller, and
//! [`Egress::route`](http::Egress::route) panics without one. No feature of this crate has to be
//! enabled.
//!
//! The library reads no command line and no configuration file. Of the environment it uses only
//! `TMPDIR`, the place of temporary directories.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "toolcell runs on Linux only: it relies on its processes, signals and memory maps; build in a Linux VM or container"
);

// -- the operating system
mod os;
// -- what tenants share, and each one's part of it
pub mod tenant;
// -- values of secrets, and their removal
pub mod secrets;
// -- resources that grants give access to
mod capability;
// -- tools and their handlers
pub mod tool;
// -- components and cells: the only part that uses wasm
mod engine;
// -- sealed states of questions
mod seal;
// -- one call
mod executor;
// -- many calls
pub mod run;
// -- one turn of an agent loop
pub mod step;
// -- tools in a process of their own
pub mod process;

pub use engine::Engine;
pub use engine::component::Component;
pub use executor::Executor;
#[doc(inline)]
pub use provider::Provider;
#[doc(inline)]
pub use run::policy::OnToolError;
#[doc(inline)]
pub use run::registry::Registry;
#[doc(inline)]
pub use run::runner::{RunOptions, Runner};
pub use seal::Sealer;
#[doc(inline)]
pub use step::{Stepper, Turn};
#[doc(inline)]
pub use tenant::Tenant;
#[doc(inline)]
pub use tool::Tool;
pub use tool::handler::options::CallOptions;
#[doc(inline)]
pub use toolcell_contract::call::usage::Usage;
#[doc(inline)]
pub use toolcell_contract::call::{AbortSignal, CallContext, CallResult, Completion, ToolCall};
#[doc(inline)]
pub use toolcell_contract::definition::Definition;
#[doc(inline)]
pub use toolcell_contract::error::Error;
#[doc(inline)]
pub use toolcell_contract::event::{Event, EventSink};
#[doc(inline)]
pub use toolcell_contract::grants::{Grants, Overlay};
#[doc(inline)]
pub use toolcell_contract::json::Json;
#[doc(inline)]
pub use toolcell_contract::limits::Limits;
#[doc(inline)]
pub use toolcell_contract::outcome::refusal::Refusal;
#[doc(inline)]
pub use toolcell_contract::outcome::tool_error::ToolError;
#[doc(inline)]
pub use toolcell_contract::outcome::{Outcome, Question};

pub use capability::kv;

/// Controls that tests of this repository disable, one at a time.
#[doc(hidden)]
pub mod controls {
    pub use toolcell_contract::controls::*;
}

/// Parts of a call: its cancellation, files, resumption and log.
pub mod call {
    #[doc(inline)]
    pub use toolcell_contract::call::{CallCanceller, Resume};
    #[doc(inline)]
    pub use toolcell_contract::event::{LogLevel, LogSource};
    #[doc(inline)]
    pub use toolcell_contract::json::JsonFault;

    pub use crate::capability::files::CallFiles;
    pub use crate::executor::JsonReservation;
}

/// Clocks, so that a test can set the time.
pub mod clock {
    pub use crate::os::clock::{Clock, ManualClock, Sleep, SystemClock};
}

/// Components before and after they are loaded: their kind, their imports, their contents.
pub mod component {
    pub use crate::engine::adapt::component_kind::{
        Command, CommandInput, CommandOutput, ComponentBytes, ComponentKind,
    };
    pub use crate::engine::{
        CodeTier, Contents, ImportStatus, Inspection, LoadOptions, Module, OnMissingGrant, PathUse,
        Producer, Section,
    };
}

/// Files of the host: temporary directories, private files, directories that may not be granted.
pub mod files {
    pub use crate::capability::files::{TemporaryDirectory, forbidden_root, remove_tree};
    pub use crate::os::signals::ignore_file_size_signal;

    /// Files that only this user can read and write.
    pub mod private_file {
        pub use crate::os::private::{read, replace};
    }
}

/// Rules of [`Grants`], and the decision about a request ([`Rights`](grants::Rights)).
pub mod grants {
    #[doc(inline)]
    pub use toolcell_contract::grants::rights::{
        Decision, Denial, Layer, Request, Rights, Suggestion, toml_text,
    };
    #[doc(inline)]
    pub use toolcell_contract::grants::{
        Access, Directory, DirectoryQuota, GrantKind, Host, HttpRule, Injection, InvalidRule,
        InvalidTarget, InvokeRule, KeyRule, Method, PathRule, SecretGrant, Target,
        has_metadata_service,
    };
}

/// Requests of tools: connections, proxies, certificate authorities, name resolution.
pub mod http {
    pub use crate::capability::http::{
        CannedResponse, Egress, Proxy, ResolveFuture, Resolver, RootCertificates, Route,
        SystemResolver,
    };
}

/// Results as text for a model.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolcell::Error> {
/// use serde_json::Value;
/// use toolcell::message::Failure;
/// use toolcell::{CallOptions, Definition, Executor, Outcome, Tool, ToolCall};
///
/// let definition = Definition::new("now", "Tells the time.")?;
/// let tool = Tool::native(definition, async |_: Value| Outcome::error("the clock stopped"))?;
/// let call = ToolCall::new("call-1", "now", "{}");
/// let completion = Executor::new().call(&tool, call, CallOptions::default()).await;
/// let failure = completion.failure();
/// assert!(matches!(failure, Some(Failure::Error(error)) if error.message == "the clock stopped"));
/// # Ok(()) }
/// ```
pub mod message {
    #[doc(inline)]
    pub use toolcell_contract::message::Message;
    #[doc(inline)]
    pub use toolcell_contract::message::encode::{EncodeError, EncodeInput, Encoder, JsonEncoder};
    #[doc(inline)]
    pub use toolcell_contract::message::failure::Failure;
    #[doc(inline)]
    pub use toolcell_contract::message::view::ResultView;
}

/// Parts of the endings of a call: of an [`Outcome`], a [`ToolError`] and a [`Refusal`].
pub mod outcome {
    #[doc(inline)]
    pub use toolcell_contract::outcome::refusal::{Fault, FaultKind, LengthUnit, ResumeFault};
    #[doc(inline)]
    pub use toolcell_contract::outcome::tool_error::{
        BlockedOn, Crash, CrashKind, Exit, Frame, LimitHit, LimitKind, Reason, ReturnRule, Timeout,
    };
    #[doc(inline)]
    pub use toolcell_contract::outcome::{
        Halt, HandlerError, Media, Output, Part, Resource, ResourceContent,
    };
}

/// Formats of model providers: definitions out, calls in, results out.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::{Value, json};
/// use toolcell::{Definition, Provider, Registry, RunOptions, Runner, Tool};
///
/// let registry = Registry::new();
/// registry.register(Tool::native(Definition::new("now", "Tells the time.")?, async |_: Value| json!("noon"))?)?;
///
/// // The request offers the tools, the response has calls, and the next request has their results.
/// let offered = Provider::OpenAi.definitions(&registry.list())?.value;
/// assert_eq!(offered[0]["function"]["name"], "now");
/// let response = json!({"choices": [{"message": {"tool_calls": [
///     {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}},
/// ]}}]});
/// let asked = Provider::OpenAi.calls(&response)?;
/// let outcome = Runner::new(registry).run(asked.calls.clone(), RunOptions::default()).await?;
/// let results = Provider::OpenAi.results(&asked.answered(outcome.messages)).value;
/// assert_eq!(results[0]["content"], "noon");
/// # Ok(()) }
/// ```
pub mod provider {
    #[doc(inline)]
    pub use toolcell_provider::{
        AssembleError, Assembler, Calls, Conversion, Fragment, Note, OpenCall, Provider,
        ProviderError, UnreadableCall, agui_events, agui_run_end,
    };
}

/// Similar names: the nearest known name, for hints, and names that can be mistaken for each other.
pub mod names {
    #[doc(hidden)]
    pub use toolcell_contract::names::did_you_mean;
    #[doc(inline)]
    pub use toolcell_contract::names::{confusable, nearest};
}

/// Settings of an [`Engine`]: isolation, compilation, the place of cells, recording.
pub mod runtime {
    pub use crate::engine::{
        Deterministic, EngineBuilder, InUse, Isolation, Optimise, Placement, Recorder, Recording,
        compile_worker,
    };
}
