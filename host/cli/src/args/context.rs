//! Parses the context of a call from the options `--context`, `--answer` and `--state`.
//!
//! The context says where a call comes from: session, tenant, attempt, free metadata, and the
//! answer to a question of an earlier call with the state that came with it. `run` and `batch` call
//! [`context`] with the texts from the command line, which are JSON, and pass the resulting
//! [`CallContext`] to the library. An unknown key is an error that names the nearest known one. An
//! answer that does not look like JSON counts as a string. [`warn_without_tenant`] warns if the
//! configuration defines tenants and the call names none, because no tenant's section narrows the
//! grants then.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toolcell::call::{JsonFault, Resume};
use toolcell::{CallContext, Json, names};

use super::json_repair;
use crate::config::{Config, ResolvedComponent};
use crate::print::{Failure, Printer, Result};

const KEYS: [&str; 8] =
    ["session_id", "request_id", "thread_id", "run_id", "tenant", "metadata", "attempt", "resume"];
const RESUME_KEYS: [&str; 2] = ["answer", "state"];

/// Returns the context of a call.
pub(crate) fn context(
    typed: Option<&str>,
    answer: Option<&str>,
    state: Option<&str>,
) -> Result<CallContext> {
    let mut context = CallContext::default();
    let object =
        typed.map(|typed| object("--context", &json("--context", typed)?, &KEYS)).transpose()?;
    for (key, value) in object.unwrap_or_default() {
        let text = || field(&key, &value, "a string", "\"abc\"").map(Some);
        match key.as_str() {
            "session_id" => context.session_id = text()?,
            "request_id" => context.request_id = text()?,
            "thread_id" => context.thread_id = text()?,
            "run_id" => context.run_id = text()?,
            "tenant" => context.tenant = text()?,
            "attempt" => context.attempt = Some(field(&key, &value, "a whole number", "2")?),
            "resume" => context.resume = Some(resume(&value)?),
            "metadata" => context.metadata = Some(value),
            // `object` accepts the keys in `KEYS` only.
            _ => {}
        }
    }
    if let Some(answer) = answer {
        if context.resume.is_some() {
            let message = "the answer is given twice: by `--answer` and by `resume` in `--context`";
            return Err(Failure::usage(message, "leave one of them out"));
        }
        let state = state.map(|state| json_or_text("--state", state)).transpose()?;
        context.resume = Some(Resume { answer: json_or_text("--answer", answer)?, state });
    }
    Ok(context)
}

/// Warns of a call of a configured component without a tenant, if the configuration defines
/// tenants: no tenant's section narrows the grants then.
pub(crate) fn warn_without_tenant(
    printer: &Printer,
    config: &Config,
    context: &CallContext,
    components: &[ResolvedComponent<'_>],
) {
    let is_configured = components.iter().any(|chosen| chosen.configured.is_some());
    if let (Some(file), None, false, true) =
        (&config.file, &context.tenant, config.tenants.is_empty(), is_configured)
    {
        printer.warning(format!(
            "`{file}` defines tenants, and `--tenant` is not given: the full grants of the component apply"
        ));
    }
}

/// Parses JSON. A text that is not JSON counts as a string, unless it begins like an object, an
/// array or a string.
fn json_or_text(what: &str, typed: &str) -> Result<Json> {
    match json(what, typed) {
        Err(_) if !typed.trim_start().starts_with(['{', '[', '"']) => {
            Ok(Json::from(serde_json::Value::from(typed)))
        }
        judged => judged,
    }
}

fn resume(value: &Json) -> Result<Resume> {
    let mut object = object("`resume` in `--context`", value, &RESUME_KEYS)?;
    let Some(answer) = object.remove("answer") else {
        let hint = r#"write {"resume": {"answer": …, "state": …}}"#;
        return Err(Failure::usage("`resume` in `--context` has no `answer`", hint));
    };
    Ok(Resume { answer, state: object.remove("state") })
}

fn json(what: &str, typed: &str) -> Result<Json> {
    Json::parse(typed.to_owned()).map_err(|fault| {
        let hint = if typed.starts_with('@') {
            "this option reads no file: write the JSON itself".to_owned()
        } else if matches!(fault, JsonFault::TooDeep(_)) {
            "nest lists and objects less deeply".to_owned()
        } else if matches!(fault, JsonFault::TooManyNodes(_)) {
            "pass fewer values".to_owned()
        } else {
            let quote = || "quote it for the shell: '{\"key\": \"value\"}'".to_owned();
            json_repair::hint(typed).unwrap_or_else(quote)
        };
        Failure::usage(format!("{what}: {fault}"), hint)
    })
}

/// Returns the members of an object, which may have these keys only.
fn object(what: &str, value: &Json, keys: &[&str]) -> Result<BTreeMap<String, Json>> {
    let known = || format!("the keys are: {}", keys.join(", "));
    let object: BTreeMap<String, Json> = serde_json::from_str(value.as_str())
        .map_err(|_| Failure::usage(format!("{what} is not a JSON object"), known()))?;
    match object.keys().find(|key| !keys.contains(&key.as_str())) {
        None => Ok(object),
        Some(unknown) => {
            let hint = names::did_you_mean(unknown, keys.iter().copied(), known);
            let unknown = unknown.escape_debug();
            Err(Failure::usage(format!("{what} has an unknown key `{unknown}`"), hint))
        }
    }
}

fn field<T: DeserializeOwned>(key: &str, value: &Json, expected: &str, example: &str) -> Result<T> {
    serde_json::from_str(value.as_str()).map_err(|_| {
        Failure::usage(
            format!("`{key}` in `--context` is not {expected}"),
            format!("write for example `--context '{{\"{key}\": {example}}}'`"),
        )
    })
}
