//! Serialised forms of this crate's types, for messages between the host and a worker process.
//!
//! A worker process runs the tools of one tenant in a child of the host. `wire` uses these forms
//! when it writes and reads calls, their contexts, limits and overlays (rules that can only narrow a
//! grant), which have no JSON of their own or one that is read otherwise. Rules of overlays travel
//! as text and are parsed again. Both ends are one program in one version, so the forms are not a
//! stable format.
//!
//! Not here: results and usage, which travel as their own JSON, with times in whole milliseconds.
//! The parent replaces the times of a timeout by its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CallContext, Resume, ToolCall};
use crate::grants::{InvalidRule, Overlay};
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

/// An [`Overlay`] with its rules as text.
#[derive(Serialize, Deserialize)]
pub struct Narrowing {
    paths: Option<Vec<String>>,
    http: Option<Vec<String>>,
    environment: Option<BTreeSet<String>>,
    secrets: Option<BTreeSet<String>>,
    reveal: Option<BTreeSet<String>>,
    kv: Option<Vec<String>>,
    invoke: Option<Vec<String>>,
}

impl From<&Overlay> for Narrowing {
    fn from(overlay: &Overlay) -> Self {
        fn written<T: Display>(rules: &Option<Vec<T>>) -> Option<Vec<String>> {
            rules.as_ref().map(|rules| rules.iter().map(T::to_string).collect())
        }
        let Overlay { paths, http, environment, secrets, reveal, kv, invoke } = overlay;
        Self {
            paths: written(paths),
            http: written(http),
            environment: environment.clone(),
            secrets: secrets.clone(),
            reveal: reveal.clone(),
            kv: written(kv),
            invoke: written(invoke),
        }
    }
}

impl TryFrom<Narrowing> for Overlay {
    type Error = InvalidRule;

    fn try_from(narrowing: Narrowing) -> Result<Self, InvalidRule> {
        fn read<T: FromStr<Err = InvalidRule>>(
            rules: Option<Vec<String>>,
        ) -> Result<Option<Vec<T>>, InvalidRule> {
            rules.map(|rules| rules.iter().map(|rule| rule.parse()).collect()).transpose()
        }
        let Narrowing { paths, http, environment, secrets, reveal, kv, invoke } = narrowing;
        let (paths, http, kv, invoke) = (read(paths)?, read(http)?, read(kv)?, read(invoke)?);
        Ok(Self { paths, http, environment, secrets, reveal, kv, invoke })
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
        for overlay in [Overlay::default(), Overlay::deny_all(), some] {
            let sent = serde_json::to_vec(&Narrowing::from(&overlay)).unwrap();
            let arrived: Narrowing = serde_json::from_slice(&sent).unwrap();
            assert_eq!(Overlay::try_from(arrived).unwrap(), overlay);
        }
        let no_rule: Narrowing = serde_json::from_str(r#"{"http": ["everywhere"]}"#).unwrap();
        assert!(Overlay::try_from(no_rule).is_err());
    }
}
