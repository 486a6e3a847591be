//! Chooses the sealer of an executor, and seals the questions of its tools.
//!
//! A tool can answer with a question to a person and a state that comes back with the reply.
//! Sealing encrypts and authenticates that state, because it travels through an untrusted client.
//! `checking` calls `sealed` after each answer; it changes only questions. By default the key is
//! generated once for the process; an embedder (the program that uses this library) can give a
//! stored key or turn sealing off. Unless it is off, a question leaves sealed or not at all:
//! without a key, the call ends as a tool error.
//!
//! Not here: the encryption, in the module `seal`.

use std::sync::LazyLock;

use toolcell_contract::call::CallResult;
use toolcell_contract::outcome::Outcome;
use toolcell_contract::outcome::tool_error::{Exit, ToolError};

use super::{Executor, checks};
use crate::seal::{Origin, Sealer};
use crate::tool::{Tool, handler::Invocation};

/// The sealer of an executor.
#[derive(Debug, Clone, Default)]
pub(super) enum Sealing {
    /// The sealer of the process.
    #[default]
    Generated,
    Given(Sealer),
    Off,
}

/// The sealer of the process. `None` if the system has no randomness.
static GENERATED: LazyLock<Option<Sealer>> = LazyLock::new(|| Sealer::generate().ok());

impl Executor {
    /// Returns the sealer, or `None` if questions are not sealed.
    pub(super) fn sealer(&self) -> Option<Result<&Sealer, ToolError>> {
        match &self.sealing {
            Sealing::Generated => {
                Some(GENERATED.as_ref().ok_or(ToolError::HandlerExit(Exit::ProcessEnded)))
            }
            Sealing::Given(sealer) => Some(Ok(sealer)),
            Sealing::Off => None,
        }
    }

    /// Seals the state of a question. Other results stay as they are.
    pub(super) fn sealed(
        &self,
        tool: &Tool,
        mut result: CallResult,
        invocation: &Invocation,
    ) -> CallResult {
        if let (Some(sealer), CallResult::Outcome(Outcome::AskUser(question))) =
            (self.sealer(), &mut result)
        {
            match sealer.and_then(|sealer| sealer.seal(&origin(tool, invocation), question)) {
                Ok(state) => question.state = Some(state),
                Err(error) => return CallResult::ToolError(error),
            }
        }
        result
    }
}

/// Identifies the call to which a question belongs: tool, tenant and arguments.
pub(super) fn origin<'a>(tool: &'a Tool, invocation: &'a Invocation) -> Origin<'a> {
    let arguments =
        invocation.fingerprint.unwrap_or_else(|| checks::fingerprint_of(&invocation.call));
    Origin::of(tool, invocation.context.tenant.as_deref(), arguments)
}
