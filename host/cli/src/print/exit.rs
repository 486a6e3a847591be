//! Exit statuses: one number for each kind of end, equal for every command.
//!
//! A command returns an [`ExitStatus`], which `main` turns into the status of the process. It is
//! made from the result of a call or from the halt of a run (0 ok, 10 the tool's error, 20 a trap
//! or timeout, 21 a refusal, and so on); a failure of the command has its own. A number never
//! changes its meaning, since scripts depend on it. [`HELP`] is the table of `toolcell --help`.

use std::process::ExitCode;

use toolcell::run::RunHalt;
use toolcell::{CallResult, Outcome};

/// The status with which the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// The tool answered `ok`, a batch ran to its end, or there was no error.
    Ok = 0,
    /// Anything without a number of its own: an error of a file, a component or the machine.
    Failed = 1,
    /// The command line is invalid.
    BadUsage = 2,
    /// The tool reported failure.
    HandlerError = 10,
    /// The tool asks a person a question.
    AskUser = 11,
    /// The tool ends the agent's loop.
    Halt = 12,
    /// The tool could not answer: trap, exit, timeout, unusable return. Or a failure of any kind
    /// halted a batch.
    ToolError = 20,
    /// The host refused the call before the tool ran.
    Refusal = 21,
}

/// The table for `--help`.
pub(crate) const HELP: &str = "\
Exit status:
   0  the tool answered `ok`; a batch ran to its end, with or without failed calls
   1  any other error: a file, a component, an unknown tool, the machine
   2  bad usage
  10  the tool reported an error
  11  the tool asks a person a question
  12  the tool ends the agent's loop (halt)
  20  tool error: it trapped, exited, ran out of fuel or time, or its answer is unusable;
      or, with `batch --on-tool-error halt`, a call failed (the other calls were made)
  21  refusal: the host refused the call before the tool ran, because of its arguments or of
      a secret without a value, or because the component is not approved
A signal ends the command (a shell shows 130 after Ctrl-C). A call that is being made has two
seconds to finish; a second signal stops it at once. `batch` still prints a message for each
call; a call that did not finish is `cancelled`. A signal that was ignored when the
command began, as under `nohup` or in a script's background job, stays ignored.";

impl From<&CallResult> for ExitStatus {
    fn from(result: &CallResult) -> Self {
        match result {
            CallResult::Outcome(Outcome::Ok(_)) => Self::Ok,
            CallResult::Outcome(Outcome::Error(_)) => Self::HandlerError,
            CallResult::Outcome(Outcome::AskUser(_)) => Self::AskUser,
            CallResult::Outcome(Outcome::Halt(_)) => Self::Halt,
            CallResult::ToolError(_) => Self::ToolError,
            CallResult::Refusal(_) => Self::Refusal,
        }
    }
}

impl From<&RunHalt> for ExitStatus {
    fn from(halted: &RunHalt) -> Self {
        match halted {
            RunHalt::AskUser { .. } => Self::AskUser,
            RunHalt::Handler { .. } => Self::Halt,
            RunHalt::ToolError { .. } | _ => Self::ToolError,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}
