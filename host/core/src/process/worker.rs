//! The child's side of a worker process: answers calls of its parent with tools of its own.
//!
//! The program that the host starts calls [`Worker::begin`], loads its tools, and then
//! [`Worker::serve`], which reads calls from standard input and writes answers to standard output
//! until the parent ends. Each call runs in an executor of its own, with the limits and overlays
//! (rules that narrow rights) that the parent sent; rules, limits and middleware (code around a
//! tool's own) of the tools apply as in any process. Every request is answered, or reported as
//! gone. The process does not outlive its parent. States of questions are sealed (encrypted for the
//! client) by the parent.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;
use toolcell_contract::call::{AbortSignal, CallResult};
use toolcell_contract::error::Error;
use toolcell_contract::event::Event;
use toolcell_contract::outcome::tool_error::{ReturnRule, ToolError};

use super::wire::{
    self, Answer, BadFrame, HostMessage, MAX_FRAME, Notification, OfferedTool, RequestKind,
    RequestMessage, WorkerMessage,
};
use crate::capability::files::CallFiles;
use crate::executor::Executor;
use crate::os::spawn::become_worker;
use crate::tenant::Tenant;
use crate::tool::Tool;
use crate::tool::handler::options::CallOptions;

/// The worker's side of a [`WorkerProcess`](crate::process::WorkerProcess). The process must do
/// nothing else: standard input and output belong to the `Worker`.
#[derive(Debug)]
#[must_use]
pub struct Worker(());

impl Worker {
    /// Makes this process end with its parent, and turns core dumps off. Call it first, before
    /// tools are loaded.
    ///
    /// # Errors
    /// [`Error::is_environment`] if the operating system refuses one of the two.
    pub fn begin() -> Result<Self, Error> {
        become_worker().map(|()| Self(()))
    }

    /// Tells the parent the reason why there are no tools.
    /// [`WorkerProcessBuilder::start`](crate::process::WorkerProcessBuilder::start) then returns an
    /// error whose source is this text.
    ///
    /// # Errors
    /// An I/O error if the parent has ended.
    pub fn refuse(self, words: impl Into<String>) -> io::Result<()> {
        let frame = wire::frame(&WorkerMessage::Refused(words.into())).map_err(io::Error::other)?;
        wire::write(&mut io::stdout().lock(), &frame)
    }

    /// Offers these tools, and answers their calls until the parent ends. Rules, limits and
    /// middleware of the tools apply. The overlays of tenants, the sealer and the observers are
    /// those of the parent's executor.
    ///
    /// # Errors
    /// [`Error::is_environment`] if no threads can be started, or if the parent is not a
    /// [`WorkerProcess`](crate::process::WorkerProcess).
    pub fn serve(self, tools: impl IntoIterator<Item = Tool>) -> Result<(), Error> {
        serve(tools, io::stdin().lock(), io::stdout())
    }
}

fn serve(
    tools: impl IntoIterator<Item = Tool>,
    mut input: impl Read,
    mut output: impl Write + Send + 'static,
) -> Result<(), Error> {
    let no_threads = |error: io::Error| {
        Error::engine("the worker process cannot start threads").with_source(error)
    };
    let tools: Vec<Tool> = tools.into_iter().collect();
    let (frames, queue) = mpsc::channel::<Vec<u8>>();
    let write =
        move || while queue.recv().is_ok_and(|frame| wire::write(&mut output, &frame).is_ok()) {};
    std::thread::Builder::new().name("toolcell-output".into()).spawn(write).map_err(no_threads)?;
    let speaker = FrameSender { frames, running: Arc::default() };
    let offered = tools.iter().map(offer_of).collect();
    speaker
        .send(&WorkerMessage::Ready(offered))
        .map_err(|bad| Error::engine(format!("too many tools: {bad}")))?;
    let by_name: HashMap<&str, &Tool> =
        tools.iter().map(|tool| (tool.definition().name.as_str(), tool)).collect();
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .thread_name("toolcell-calls")
        .build()
        .map_err(no_threads)?;
    let heard = loop {
        match wire::read::<HostMessage>(&mut input) {
            Ok(Some(HostMessage::Ask(asked))) => {
                let tool = by_name.get(asked.call.name.as_str()).map(|tool| Tool::clone(tool));
                speaker.begin(&runtime, tool, *asked);
            }
            Ok(Some(HostMessage::Abort(question))) => {
                if let Some(running) = speaker.running.lock().get(&question) {
                    running.abort.raise();
                }
            }
            Ok(Some(HostMessage::Cancel(question))) => {
                if let Some(running) = speaker.running.lock().get(&question) {
                    running.task.abort();
                }
            }
            Ok(None) | Err(BadFrame::Io(_)) => break Ok(()),
            Err(bad @ (BadFrame::TooLong(_) | BadFrame::Unreadable(_))) => {
                break Err(Error::engine(bad.to_string()));
            }
        }
    };
    runtime.shutdown_background();
    heard
}

fn offer_of(tool: &Tool) -> OfferedTool {
    OfferedTool {
        definition: tool.definition().clone(),
        code: tool.code().map(str::to_owned),
        limits: tool.limits(),
        always_visible: tool.always_visible(),
    }
}

/// The channel to the parent, and the requests that are being answered.
#[derive(Clone)]
struct FrameSender {
    frames: Sender<Vec<u8>>,
    running: Arc<Mutex<HashMap<u64, Running>>>,
}

struct Running {
    task: AbortHandle,
    abort: AbortSignal,
}

impl FrameSender {
    fn send(&self, news: &WorkerMessage) -> Result<(), BadFrame> {
        // A send fails only after the parent has ended, and this process ends with the parent.
        wire::frame(news).map(|frame| drop(self.frames.send(frame)))
    }

    /// Sends an answer. An answer may contain values that no tool in a cell could return, so it is
    /// parsed first as the parent will parse it: the parent would kill this process for an
    /// unreadable one.
    fn answer(&self, news: &WorkerMessage) -> Result<(), BadFrame> {
        let frame = wire::frame(news)?;
        wire::read::<WorkerMessage>(&mut frame.as_slice())?;
        drop(self.frames.send(frame));
        Ok(())
    }

    /// Starts a request. At its end it is answered, or reported as gone if it was cancelled or has
    /// panicked.
    fn begin(&self, runtime: &Runtime, tool: Option<Tool>, asked: RequestMessage) {
        let (question, abort) = (asked.number, AbortSignal::new());
        let (speaker, signal) = (self.clone(), abort.clone());
        if asked.is_aborted {
            abort.raise();
        }
        let task = runtime.spawn(async move {
            match tool {
                Some(tool) => answer(&speaker, &tool, asked, signal).await,
                None => called(CallResult::ToolError(ToolError::NotFound)),
            }
        });
        self.running.lock().insert(question, Running { task: task.abort_handle(), abort });
        let speaker = self.clone();
        runtime.spawn(async move {
            let ended = task.await;
            speaker.running.lock().remove(&question);
            match ended {
                Ok(answer) => speaker.done(question, answer),
                Err(_) => drop(speaker.send(&WorkerMessage::Gone(question))),
            }
        });
    }

    fn done(&self, question: u64, answer: Answer) {
        if let Err(bad) = self.answer(&WorkerMessage::Done(question, answer)) {
            let rule = match bad {
                BadFrame::TooLong(got) => {
                    ReturnRule::TooLarge { limit: MAX_FRAME as u64, actual: got as u64 }
                }
                BadFrame::Unreadable(error) => ReturnRule::Unreadable { detail: error.to_string() },
                BadFrame::Io(error) => ReturnRule::Unreadable { detail: error.to_string() },
            };
            let answer = called(CallResult::ToolError(ToolError::InvalidReturn(rule)));
            // This answer is small enough.
            let _ = self.send(&WorkerMessage::Done(question, answer));
        }
    }
}

fn called(result: CallResult) -> Answer {
    Answer::Called { result, usage: toolcell_contract::call::usage::Usage::default() }
}

/// Answers a request as any executor would, with the rights narrowed as in the parent's executor.
async fn answer(
    speaker: &FrameSender,
    tool: &Tool,
    mut asked: RequestMessage,
    abort: AbortSignal,
) -> Answer {
    let (context, tenant, own) = asked.call_context();
    let narrowed = Tenant { overlay: tenant.map(Arc::new), ..Tenant::default() };
    let (speaker, question) = (speaker.clone(), asked.number);
    // The parent seals the state of questions.
    let executor =
        Executor::new().without_sealer().with_limits(asked.limits).with_events(move |event| {
            if let Some(news) = news(question, event) {
                let _ = speaker.send(&news);
            }
        });
    let executor = match &context.tenant {
        Some(name) => executor.with_tenant(name, narrowed),
        None => executor.with_anonymous(narrowed),
    };
    let executor = executor.with_others(asked.is_shared);
    if asked.what == RequestKind::Visible {
        let visible = executor.is_visible(tool, Some(&asked.call.arguments), &context).await;
        return Answer::Visible(visible == Some(true));
    }
    // The parent ends the call by force, after the grace period that its caller chose.
    let options = CallOptions {
        context: context.into(),
        abort,
        stop_grace: Duration::MAX,
        overlay: own.map(Arc::new),
        // The files of a call that has ended in the meantime cannot be opened.
        files: asked.files.as_deref().and_then(|path| CallFiles::open_existing(path).ok()),
        ..CallOptions::default()
    };
    if asked.what == RequestKind::Validate {
        return Answer::Validated(executor.validate(tool, asked.call, options).await);
    }
    let completion = executor.call(tool, asked.call, options).await;
    Answer::Called { result: completion.result, usage: completion.usage }
}

/// Returns the message for the parent's observers. The parent reports the end of a call itself.
fn news(question: u64, event: Event) -> Option<WorkerMessage> {
    let said = match event {
        Event::Started { .. } => return Some(WorkerMessage::Started(question)),
        Event::Progress { done, total, message, .. } => {
            Notification::Progress { done, total, message }
        }
        Event::Log { source, level, message, .. } => Notification::Log { source, level, message },
        Event::Denied { denial, .. } => Notification::Denied(denial),
        Event::Completed { .. } | _ => return None,
    };
    Some(WorkerMessage::Said(question, said))
}
