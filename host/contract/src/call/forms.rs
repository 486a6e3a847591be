//! Serialised forms of this crate's types, for messages between the host and a worker process.
//!
//! A worker process runs the tools of one tenant in a child of the host. `process/wire` of the
//! library uses these forms for calls, contexts, limits and overlays (rules that can only narrow a
//! grant). Contexts, limits and overlays have no JSON of their own. The public JSON of a call also
//! accepts arguments as an object; here they are always text. Rules of overlays travel as text and
//! are parsed again. Both ends are one program in one version, so the forms are no stable format.
//!
//! Not here: results and usage, which travel as their own JSON. In a timeout, the parent puts the
//! budget and the use of the whole call in place of those that the worker measured.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CallContext, Resume, ToolCall};
use crate::grants::{GrantKind, InvalidRule, Overlay};
use crate::json::{Json, present};
use crate::limits::Limits;

#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolCall")]
pub struct CallForm {
    id: String,
    name: String,
    arguments: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CallContext")]
pub struct ContextForm {
    session_id: Option<String>,
    request_id: Option<String>,
    thread_id: Option<String>,
    run_id: Option<String>,
    tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    metadata: Option<Json>,
    attempt: Option<u32>,
    resume: Option<Resume>,
    extensions: BTreeMap<String, Json>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Limits")]
pub struct LimitsForm {
    fuel: u64,
    timeout: Duration,
    memory: u64,
    arguments: u64,
    result: u64,
    log: u64,
    host_calls: u64,
}

/// An [`Overlay`] with its rules as text, by the key of their kind.
#[derive(Serialize, Deserialize)]
pub struct Narrowing(BTreeMap<String, Vec<String>>);

impl From<&Overlay> for Narrowing {
    fn from(overlay: &Overlay) -> Self {
        let rules = |kind: GrantKind| Some((kind.key().to_owned(), overlay.rules(kind)?));
        Self(GrantKind::all().filter_map(rules).collect())
    }
}

impl TryFrom<Narrowing> for Overlay {
    type Error = InvalidRule;

    fn try_from(Narrowing(lists): Narrowing) -> Result<Self, InvalidRule> {
        let mut overlay = Self::default();
        for (key, rules) in &lists {
            let kind = GrantKind::of_word(key).ok_or_else(|| {
                InvalidRule::new(key, "unknown kind of grant", GrantKind::listed(|row| [row.key]))
            })?;
            overlay.narrow(kind, &rules.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        Ok(overlay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlay_round_trips_to_the_worker() {
        let mut some = Overlay::deny_all();
        some.paths = Some(vec!["read /data".parse().unwrap()]);
        some.http = Some(vec!["GET,POST https://.example.com/v1".parse().unwrap()]);
        some.kv = Some(vec!["write notes/*".parse().unwrap()]);
        some.invoke = Some(vec!["own notes_*".parse().unwrap()]);
        some.secrets = Some(["token".to_owned()].into());
        // `deny_all` has each field: one without a row would not narrow the worker.
        for overlay in [Overlay::default(), Overlay::deny_all(), some] {
            let sent = serde_json::to_vec(&Narrowing::from(&overlay)).unwrap();
            let arrived: Narrowing = serde_json::from_slice(&sent).unwrap();
            assert_eq!(Overlay::try_from(arrived).unwrap(), overlay);
        }
        for bad in [r#"{"http": ["everywhere"]}"#, r#"{"telepathy": []}"#] {
            let no_rule: Narrowing = serde_json::from_str(bad).unwrap();
            assert!(Overlay::try_from(no_rule).is_err(), "{bad}");
        }
    }
}
