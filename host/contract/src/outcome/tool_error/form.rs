//! Reads a [`ToolError`] back from its JSON.
//!
//! A client that reads results uses it through serde's `Deserialize`; the parent module writes the
//! form. The type of the cause depends on the reason, so the cause is kept as text until the reason
//! is known. The message in the JSON is not read: the reason and its cause contain all of it.

use std::time::Duration;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};

use super::{BlockedOn, Reason, Timeout, ToolError};
use crate::json::{Json, needed};

#[derive(Deserialize)]
struct ToolErrorForm {
    reason: Reason,
    /// Its type depends on the reason, which may come after it.
    cause: Option<Json>,
}

impl<'de> Deserialize<'de> for ToolError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ToolErrorForm { reason, cause } = ToolErrorForm::deserialize(deserializer)?;
        Ok(match reason {
            Reason::HandlerRaised => Self::HandlerRaised(read(cause)?),
            Reason::HandlerExit => Self::HandlerExit(read(cause)?),
            Reason::Timeout => Self::Timeout(read(cause)?),
            Reason::InvalidReturn => Self::InvalidReturn(read(cause)?),
            Reason::NotFound => Self::NotFound,
            Reason::EncodingFailed => Self::EncodingFailed(read(cause)?),
        })
    }
}

fn read<T: DeserializeOwned, E: Error>(cause: Option<Json>) -> Result<T, E> {
    serde_json::from_str(needed::<_, E>(cause, "cause")?.as_str()).map_err(E::custom)
}

#[derive(Deserialize)]
struct WrittenTimeout {
    kind: TimeoutKind,
    budget: Option<u64>,
    used: Option<u64>,
    budget_ms: Option<u64>,
    used_ms: Option<u64>,
    blocked_on: Option<BlockedOn>,
    stdout: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TimeoutKind {
    Fuel,
    Deadline,
    Blocked,
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WrittenTimeout { kind, budget, used, budget_ms, used_ms, blocked_on, stdout } =
            WrittenTimeout::deserialize(deserializer)?;
        let time = |millis: Option<u64>, name| needed(millis, name).map(Duration::from_millis);
        Ok(match kind {
            TimeoutKind::Fuel => Self::Fuel {
                budget: needed(budget, "budget")?,
                used: needed(used, "used")?,
                stdout,
            },
            TimeoutKind::Deadline => Self::Deadline {
                budget: time(budget_ms, "budget_ms")?,
                used: time(used_ms, "used_ms")?,
                stdout,
            },
            TimeoutKind::Blocked => {
                let (budget, used) = (time(budget_ms, "budget_ms")?, time(used_ms, "used_ms")?);
                Self::Blocked { budget, used, blocked_on, stdout }
            }
        })
    }
}
