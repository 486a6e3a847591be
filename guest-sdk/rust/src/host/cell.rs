//! Calls the imports of a component in its cell.

use std::time::Duration;

use serde_json::Value;

use super::budget::Remaining;
use super::log::Level;
use super::{http, invoke as calls, kv, secrets};
use crate::bindings::toolcell::tool as host;
use crate::bindings::wasi::io::poll::Pollable;
use crate::tool::wire::milliseconds;

pub(crate) fn log(level: Level, message: &str) {
    let level = match level {
        Level::Trace => host::log::Level::Trace,
        Level::Debug => host::log::Level::Debug,
        Level::Info => host::log::Level::Info,
        Level::Warn => host::log::Level::Warn,
        Level::Error => host::log::Level::Error,
    };
    host::log::log(level, message);
}

pub(crate) fn progress(done: u64, total: Option<u64>, message: Option<&str>) {
    host::progress::report(done, total, message);
}

pub(crate) fn abort_requested() -> bool {
    host::abort::requested()
}

pub(crate) fn remaining() -> Remaining {
    let host::budget::Allowance { fuel, milliseconds, memory } = host::budget::remaining();
    Remaining { fuel, time: Duration::from_millis(milliseconds), memory }
}

/// A pollable that becomes ready when the call should end.
#[derive(Debug)]
pub(crate) struct Wish(Pollable);

impl Wish {
    pub(crate) fn new() -> Self {
        Self(host::abort::subscribe())
    }

    pub(crate) fn ready(&self) -> bool {
        self.0.ready()
    }

    pub(crate) fn block(&self) {
        self.0.block();
    }

    pub(crate) fn handle(self) -> Option<u32> {
        Some(self.0.take_handle())
    }
}

/// A handle of the host.
#[derive(Debug)]
pub(crate) struct Secret(host::secrets::Secret);

impl Secret {
    pub(crate) fn name(&self) -> String {
        self.0.name()
    }
}

pub(crate) fn secret(name: &str) -> Result<Secret, secrets::Error> {
    host::secrets::get(name).map(Secret).map_err(no_secret)
}

pub(crate) fn reveal(name: &str) -> Result<String, secrets::Error> {
    host::reveal::value(name).map_err(no_secret)
}

fn no_secret(fault: host::secrets::Fault) -> secrets::Error {
    match fault {
        host::secrets::Fault::Denied(sentence) => secrets::Error::Denied(sentence),
        host::secrets::Fault::Unavailable(problem) => secrets::Error::Unavailable(problem),
    }
}

/// Does nothing: in a cell the host has the secrets.
pub(crate) fn set_secret(_name: String, _value: String) {}

pub(crate) fn send(request: http::Request<'_>) -> Result<http::Response, http::Error> {
    use host::http::Fault;
    let secret = request.secret.map(|secret| &secret.0.0);
    let request = host::http::Request {
        method: request.method.to_owned(),
        url: request.url,
        headers: request.headers,
        body: request.body,
        timeout_ms: request.timeout.map(milliseconds),
    };
    match host::http::send(&request, secret) {
        Ok(host::http::Response { status, headers, body }) => {
            Ok(http::Response { status, headers, body })
        }
        Err(Fault::Denied(sentence)) => Err(http::Error::Denied(sentence)),
        Err(Fault::Invalid(problem)) => Err(http::Error::Invalid(problem)),
        Err(Fault::Unreachable(problem)) => Err(http::Error::Unreachable(problem)),
        Err(Fault::Timeout) => Err(http::Error::Timeout),
        Err(Fault::OverBudget(problem)) => Err(http::Error::OverBudget(problem)),
        Err(Fault::Broken(problem)) => Err(http::Error::Broken(problem)),
    }
}

/// Does nothing: in a cell servers answer.
pub(crate) fn answer_with(
    _answer: impl Fn(&http::Request<'_>) -> Result<http::Response, http::Error> + 'static,
) {
}

pub(crate) fn get(key: &str) -> Result<Option<kv::Entry>, kv::Error> {
    let entry = host::kv::get(key).map_err(not_done)?;
    Ok(entry.map(|host::kv::Entry { data, version }| kv::Entry { data, version }))
}

pub(crate) fn set(key: &str, value: &[u8], time: Option<Duration>) -> Result<u64, kv::Error> {
    host::kv::set(key, value, time.map(milliseconds)).map_err(not_done)
}

pub(crate) fn delete(key: &str) -> Result<bool, kv::Error> {
    host::kv::delete(key).map_err(not_done)
}

pub(crate) fn compare_and_swap(
    key: &str,
    expected: Option<u64>,
    value: &[u8],
    time: Option<Duration>,
) -> Result<Option<u64>, kv::Error> {
    host::kv::compare_and_swap(key, expected, value, time.map(milliseconds)).map_err(not_done)
}

/// Returns keys, and the cursor of the next page if there is one.
pub(crate) fn list(
    prefix: &str,
    cursor: Option<&str>,
    most: u32,
) -> Result<(Vec<String>, Option<String>), kv::Error> {
    let host::kv::Page { keys, cursor } = host::kv::list(prefix, cursor, most).map_err(not_done)?;
    Ok((keys, cursor))
}

fn not_done(fault: host::kv::Fault) -> kv::Error {
    match fault {
        host::kv::Fault::Denied(sentence) => kv::Error::Denied(sentence),
        host::kv::Fault::InvalidKey(problem) => kv::Error::InvalidKey(problem),
        host::kv::Fault::OverQuota(problem) => kv::Error::OverQuota(problem),
        host::kv::Fault::Unavailable(problem) => kv::Error::Unavailable(problem),
    }
}

/// Calls another tool and returns its output: `{"value", …}`.
pub(crate) fn invoke(name: &str, arguments: Value) -> Result<Value, calls::Error> {
    use host::invoke::{Ending, Fault, call};
    type Case = fn(Value) -> calls::Error;
    let (case, text): (Case, String) = match call(name, &arguments.to_string()) {
        Ok(Ending::Ok(output)) => {
            return serde_json::from_str(&output)
                .map_err(|error| calls::Error::unexpected_value(&error));
        }
        Ok(Ending::Error(text)) => (calls::Error::Failed, text),
        Ok(Ending::AskUser(text)) => (calls::Error::AskUser, text),
        Ok(Ending::Halt(text)) => (calls::Error::Halt, text),
        Ok(Ending::ToolError(text)) => (calls::Error::ToolError, text),
        Ok(Ending::Refusal(text)) => (calls::Error::Refused, text),
        Err(Fault::Denied(sentence)) => return Err(calls::Error::Denied(sentence)),
        Err(Fault::Limit(sentence)) => return Err(calls::Error::Limit(sentence)),
        Err(Fault::Unavailable(sentence)) => return Err(calls::Error::Unavailable(sentence)),
    };
    Err(serde_json::from_str(&text)
        .map_or_else(|error| calls::Error::unexpected_value(&error), case))
}

/// Does nothing: in a cell other tools answer.
pub(crate) fn answer_calls_with(
    _answer: impl Fn(&str, &Value) -> Result<Value, calls::Error> + 'static,
) {
}
