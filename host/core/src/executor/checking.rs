//! Runs the checks around a tool's handler, which is its code: at once for small values, in turn
//! and on another thread for large ones.
//!
//! The executor calls `checked` before the handler gets a call, and `check_result` after its
//! answer. Both return a refusal, a tool error or the value to go on with. Parsing a large value
//! takes memory and milliseconds. So a value whose parsed tree takes 1 MiB or more waits for one of
//! two turns of the process, and is parsed on a separate pool of threads, while the caller's thread
//! serves other tasks. The rules of the embedder (the program that uses this library) always run in
//! the call's task. A panic of a check is caught. `checked` also opens the sealed state (encrypted
//! for the client) that comes with an answer to a question, and checks the answer, in turn and on
//! that pool; `check_result` seals the state of a question.
//!
//! Not here: the checks themselves, in [`checks`](super::checks); the turns, in
//! [`trees`](super::trees).

use std::sync::Arc;

use toolcell_contract::call::{CallResult, Resume};
use toolcell_contract::json::Size;
use toolcell_contract::outcome::refusal::{Fault, Refusal, ResumeFault};
use toolcell_contract::outcome::tool_error::{Crash, ToolError};
use toolcell_contract::panic_guard::guarded;

use super::checks::{self, Parsed, Rejection, check_outcome, invalid};
use super::{CANCELLED, Executor, JsonReservation, off_thread::off_thread, sealing::origin, trees};
use crate::os::clock::before;
use crate::tool::handler::{Arguments, Invocation};
use crate::tool::{Tool, handler_wait};

impl Executor {
    /// Checks a call before its handler gets it. Large arguments wait for their turn.
    pub(super) async fn checked(
        &self,
        tool: &Tool,
        invocation: &mut Arc<Invocation>,
    ) -> Result<(), Rejection> {
        let size = checks::measured(&invocation.call, &invocation.limits)?;
        let (parsed, room) = if trees::is_large(size) {
            // Boxed, because it is rare and would make the future of every call larger.
            Box::pin(self.parsed_in_turn(tool, invocation, size)).await?
        } else {
            (None, None)
        };
        let check = |invocation| guarded(|| self.check(tool, invocation, parsed, room));
        let checked = Arc::get_mut(invocation).and_then(check);
        checked.unwrap_or_else(|| Err(check_failed().into()))?;
        if let Some(resume) = invocation.context.resume.clone() {
            Box::pin(self.open_answer(tool, invocation, resume)).await?;
        }
        Ok(())
    }

    /// Opens the sealed state of an answer, and compares the answer with the schema of its
    /// question. The tool wrote that schema, and compiling its patterns may take a second: it waits
    /// for its turn, and runs on a separate thread.
    async fn open_answer(
        &self,
        tool: &Tool,
        invocation: &mut Arc<Invocation>,
        resume: Resume,
    ) -> Result<(), Refusal> {
        let Some(sealer) = self.sealer() else { return Ok(()) };
        let sealer = sealer.map_err(|_| Refusal::Resume(ResumeFault::Tampered))?.clone();
        let turn = trees::acquire_slot(invocation, invocation.text_bytes()).await;
        let turn = turn.ok_or_else(Refusal::overloaded)?;
        let (tool, of_call) = (tool.clone(), Arc::clone(invocation));
        let open = move || {
            let opened = guarded(|| sealer.open(&origin(&tool, &of_call), &resume));
            // The caller changes the invocation next, and needs the only reference to it.
            drop((of_call, turn));
            opened.unwrap_or_else(|| Err(check_failed()))
        };
        let resume = while_wanted(invocation, open).await??;
        let invocation = Arc::get_mut(invocation).ok_or_else(check_failed)?;
        Arc::make_mut(&mut invocation.context).resume = Some(resume);
        Ok(())
    }

    /// Waits for the turn of large arguments. The largest are parsed and compared with the schema
    /// on a separate thread, because that takes milliseconds. The embedder's rules always run in
    /// the call's own task.
    async fn parsed_in_turn(
        &self,
        tool: &Tool,
        invocation: &Arc<Invocation>,
        size: Size,
    ) -> Result<(Option<Parsed>, Option<JsonReservation>), Refusal> {
        let room = trees::room(tool, invocation, size).await?;
        if room.turn.is_none() {
            return Ok((None, Some(room)));
        }
        let (tool, of_call, is_sealed) =
            (tool.clone(), Arc::clone(invocation), self.sealer().is_some());
        let parse = move || {
            let parsed = guarded(|| Ok(Parsed::new(&of_call.call, is_sealed)?.compared(&tool)));
            // The caller changes the invocation next, and needs the only reference to it.
            drop(of_call);
            // The room is returned together with the tree. If the call is over, the turn ends only
            // after the tree is freed.
            (parsed.unwrap_or_else(|| Err(check_failed())), room)
        };
        let (parsed, room) = while_wanted(invocation, parse).await?;
        Ok((Some(parsed?), Some(room)))
    }

    /// Checks the arguments, and keeps those parts of them that are needed later.
    fn check(
        &self,
        tool: &Tool,
        invocation: &mut Invocation,
        parsed: Option<Parsed>,
        room: Option<JsonReservation>,
    ) -> Result<(), Rejection> {
        let mut parsed = match parsed {
            Some(parsed) => parsed,
            None => {
                // Few calls ask questions. If one does, its small arguments are parsed again for
                // the fingerprint.
                let is_needed = room.is_some() || invocation.context.resume.is_some();
                Parsed::new(&invocation.call, is_needed && self.sealer().is_some())?
            }
        };
        parsed.check(tool, &invocation.call, &invocation.context)?;
        invocation.fingerprint = parsed.fingerprint;
        if trees::is_kept_for(tool) {
            invocation.tree =
                Arguments::with_tree(parsed.arguments, room.and_then(|room| room.held));
        }
        Ok(())
    }

    /// Checks and seals a handler's answer. A large answer waits for its turn, and is checked on a
    /// separate thread.
    pub(super) async fn check_result(
        &self,
        tool: &Tool,
        result: CallResult,
        invocation: &Arc<Invocation>,
    ) -> CallResult {
        let by_the_host = || CallResult::ToolError(ToolError::HandlerRaised(Crash::by_the_host()));
        let judged = if trees::is_checked_in_turn(tool, &result) {
            let (tool, of_call) = (tool.clone(), Arc::clone(invocation));
            let check = move || guarded(|| check_outcome(&tool, result, &of_call));
            match Box::pin(in_turn(invocation, check)).await {
                Ok(judged) => judged,
                Err(error) => return CallResult::ToolError(error),
            }
        } else {
            guarded(|| check_outcome(tool, result, invocation))
        };
        let sealed = judged.and_then(|judged| guarded(|| self.sealed(tool, judged, invocation)));
        sealed.unwrap_or_else(by_the_host)
    }
}

/// Runs a check of a call that has its turn on a separate thread, until the deadline or the forced
/// end of the call. A check whose call no longer waits for it goes on, and keeps its turn.
async fn while_wanted<T: Send + 'static>(
    invocation: &Invocation,
    check: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let checked = tokio::select! {
        biased;
        checked = before(invocation.deadline(), off_thread(check)) => checked,
        () = handler_wait::forced(&invocation.abort, invocation.stop_grace) => None,
    };
    checked.ok_or_else(Refusal::overloaded)?.ok_or_else(check_failed)
}

/// Runs long work on the answer of a handler in turn, on a separate thread.
///
/// # Errors
/// The error that the call ends with if it was cancelled or its time was over before its turn came,
/// or if the work panicked.
pub(super) async fn in_turn<T: Send + 'static>(
    invocation: &Invocation,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    let turn = trees::acquire_slot(invocation, 0).await;
    if turn.is_none() && invocation.abort.is_raised() {
        return Err(CANCELLED);
    }
    if turn.is_none() && invocation.remaining().is_zero() {
        return Err(ToolError::Timeout(handler_wait::blocked(invocation)));
    }
    // The turn can be missing only if thousands of calls wait. The handler has acted already, so
    // the work on its answer is done without a turn instead of losing the answer.
    let done = off_thread(move || (work(), turn).0).await;
    done.ok_or_else(|| ToolError::HandlerRaised(Crash::by_the_host()))
}

/// Returns the refusal of arguments whose check panicked.
fn check_failed() -> Refusal {
    invalid(vec![Fault::new(
        "",
        "the host could not check the arguments against the tool's schema",
    )])
}
