//! The host functions that the prelude calls: the imports of the contract as JavaScript functions.
//!
//! Invariants: each import is called in one place. Errors are JSON `{"kind", "message"}`, results
//! are `{"ok"}`, and bytes are typed arrays. A called tool that ends without a value gives
//! `{"kind", "ending"}`.

pub(crate) mod bytes;
mod json_text;
mod requests;
mod url;

use rquickjs::function::Opt;
use rquickjs::{Ctx, Function, IntoJs as _, Object, Result, TypedArray, Value};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use toolcell_guest::bindings::toolcell::tool::{
    abort, budget, http, invoke, kv, log, progress, reveal, secrets,
};

use crate::outcome::bytes;
use crate::wasi::wasi::random::random::get_random_bytes;
use crate::{rejections, state};

/// Keys of one page of a listing.
const PAGE: u32 = 100;

/// Returns the functions as members of one object.
pub(crate) fn object<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    macro_rules! functions {
        ($($name:literal => $function:expr,)*) => { $(host.set($name, Function::new(ctx.clone(), $function)?)?;)* };
    }
    functions! {
        "isInCell" => || state::is_in_cell(),
        "log" => write_line,
        "progress" => report,
        "unhandled" => rejections::take,
        "isBusy" => rejections::is_busy,
        "abortRequested" => || abort::requested(),
        "remaining" => remaining,
        "random" => random_bytes,
        "encode" => encode,
        "decode" => decode,
        "secret" => |name: String| answer(secrets::get(&name).map(|_| Json::Null).map_err(no_secret)),
        "reveal" => |name: String| answer(reveal::value(&name).map(Json::from).map_err(no_secret)),
        "kvGet" => kv_get,
        "kvSet" => kv_set,
        "kvDelete" => |key: String| answer(kv::delete(&key).map(Json::from).map_err(not_kept)),
        "kvList" => |prefix: String| answer(kv_list(&prefix).map(Json::from).map_err(not_kept)),
        "start" => start,
        "finish" => finish,
        "cancel" => |number: u32| drop(requests::take(number)),
        "wait" => requests::wait,
        "now" => requests::now,
        "url" => url::read,
        "urlSet" => url::set,
        "encodingOf" => bytes::encoding_of,
        "openBytes" => bytes::open_bytes,
        "decodeAs" => bytes::decode_as,
        "digest" => bytes::digest,
        "hmac" => bytes::hmac,
        "hasLongNumber" => |text: String| bytes::has_long_number(&text),
        "isDeep" => |text: String, most: usize| json_text::is_deep(&text, most),
        "plainJson" => json_text::plain,
        "inflate" => bytes::inflate,
        "invoke" => |name: String, arguments: String| invoked(&name, &arguments),
    }
    #[cfg(feature = "intl")]
    crate::intl::add(ctx, &host)?;
    Ok(host)
}

/// An error: its kind and a sentence.
type Fault = (&'static str, String);

fn answer(result: std::result::Result<Json, Fault>) -> String {
    match result {
        Ok(value) => json!({ "ok": value }),
        Err((kind, message)) => json!({ "kind": kind, "message": message }),
    }
    .to_string()
}

fn write_line(level: u32, text: String) {
    let level = match level {
        0 => log::Level::Trace,
        1 => log::Level::Debug,
        2 => log::Level::Info,
        3 => log::Level::Warn,
        _ => log::Level::Error,
    };
    log::log(level, &text);
}

/// Reports progress. A negative total means that the total is unknown.
fn report(done: f64, total: f64, message: String) {
    let total = (total >= 0.0).then_some(total as u64);
    progress::report(done as u64, total, (!message.is_empty()).then_some(message.as_str()));
}

fn remaining() -> String {
    let budget::Allowance { fuel, milliseconds, memory } = budget::remaining();
    json!({ "fuel": fuel, "milliseconds": milliseconds, "memory": memory }).to_string()
}

fn random_bytes<'js>(ctx: Ctx<'js>, count: u32) -> Result<TypedArray<'js, u8>> {
    TypedArray::new(ctx, get_random_bytes(count.into()))
}

fn encode<'js>(ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u8>> {
    TypedArray::new(ctx, text.into_bytes())
}

fn decode(from: Value<'_>) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes(from)?).into_owned())
}

fn no_secret(fault: secrets::Fault) -> Fault {
    match fault {
        secrets::Fault::Denied(sentence) => ("denied", sentence),
        secrets::Fault::Unavailable(problem) => {
            ("unavailable", format!("the secret is not available: {problem}"))
        }
    }
}

fn not_kept(fault: kv::Fault) -> Fault {
    match fault {
        kv::Fault::Denied(sentence) => ("denied", sentence),
        kv::Fault::InvalidKey(problem) => {
            ("invalid_key", format!("the key or the cursor is not valid: {problem}"))
        }
        kv::Fault::OverQuota(problem) => {
            ("over_quota", format!("the store cannot keep the value: {problem}"))
        }
        kv::Fault::Unavailable(problem) => {
            ("unavailable", format!("the store does not answer: {problem}"))
        }
    }
}

/// Returns the bytes, or JSON: `{"ok": null}` if there is no such key.
fn kv_get<'js>(ctx: Ctx<'js>, key: String) -> Result<Value<'js>> {
    match kv::get(&key) {
        Ok(Some(entry)) => TypedArray::new(ctx.clone(), entry.data)?.into_js(&ctx),
        Ok(None) => answer(Ok(Json::Null)).into_js(&ctx),
        Err(fault) => answer(Err(not_kept(fault))).into_js(&ctx),
    }
}

/// Stores a value. A negative time means that it does not expire.
fn kv_set(key: String, value: Value<'_>, ttl_ms: f64) -> Result<String> {
    let ttl_ms = (ttl_ms >= 0.0).then_some(ttl_ms.ceil() as u64);
    Ok(answer(kv::set(&key, &bytes(value)?, ttl_ms).map(Json::from).map_err(not_kept)))
}

fn kv_list(prefix: &str) -> std::result::Result<Vec<String>, kv::Fault> {
    let (mut keys, mut cursor) = (Vec::new(), None);
    loop {
        let page = kv::list(prefix, cursor.as_deref(), PAGE)?;
        keys.extend(page.keys);
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(keys);
        }
    }
}

/// A request as the prelude writes it, without its body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    timeout_ms: Option<f64>,
    secret: Option<String>,
}

/// Sends a request. Returns its number, or an error.
fn start<'js>(ctx: Ctx<'js>, request: String, body: Opt<Value<'js>>) -> Result<Value<'js>> {
    let body = body.0.filter(|body| !body.is_undefined()).map(bytes).transpose()?;
    match started(&request, body) {
        Ok(number) => number.into_js(&ctx),
        Err(fault) => answer(Err(fault)).into_js(&ctx),
    }
}

fn started(request: &str, body: Option<Vec<u8>>) -> std::result::Result<u32, Fault> {
    let request: Request =
        serde_json::from_str(request).map_err(|error| ("invalid", error.to_string()))?;
    let secret = request.secret.map(|name| secrets::get(&name)).transpose().map_err(no_secret)?;
    let timeout_ms = request.timeout_ms.map(|time| time.ceil() as u64);
    let Request { method, url, headers, .. } = request;
    let request = http::Request { method, url, headers, body, timeout_ms };
    http::start(&request, secret.as_ref()).map(requests::add).map_err(unsent)
}

/// Waits for the response of a request and returns `{"head": JSON, "body"}`.
fn finish<'js>(ctx: Ctx<'js>, number: u32) -> Result<Object<'js>> {
    let (head, body) = match requests::take(number).map(|pending| pending.finish()) {
        Some(Ok(response)) => {
            (Ok(json!({ "status": response.status, "headers": response.headers })), response.body)
        }
        Some(Err(fault)) => (Err(unsent(fault)), Vec::new()),
        None => (Err(("invalid", "there is no such request".to_owned())), Vec::new()),
    };
    let answered = Object::new(ctx.clone())?;
    answered.set("head", answer(head))?;
    answered.set("body", TypedArray::new(ctx, body)?)?;
    Ok(answered)
}

fn unsent(fault: http::Fault) -> Fault {
    match fault {
        http::Fault::Denied(sentence) => ("denied", sentence),
        http::Fault::Invalid(problem) => {
            ("invalid", format!("the request cannot be sent: {problem}"))
        }
        http::Fault::Unreachable(problem) => {
            ("unreachable", format!("the server cannot be reached: {problem}"))
        }
        http::Fault::Timeout => ("timeout", "the server did not answer in time".to_owned()),
        http::Fault::OverBudget(problem) => {
            ("over_budget", format!("the limits of the call do not allow the request: {problem}"))
        }
        http::Fault::Broken(problem) => ("broken", format!("the connection broke: {problem}")),
    }
}

/// Calls another tool. The host's JSON is put into the answer unchanged.
fn invoked(name: &str, arguments: &str) -> String {
    use invoke::{Ending, Fault};
    let (kind, ending) = match invoke::call(name, arguments) {
        Ok(Ending::Ok(output)) => return format!(r#"{{"ok":{output}}}"#),
        Ok(Ending::Error(error)) => ("failed", error),
        Ok(Ending::AskUser(question)) => ("ask_user", question),
        Ok(Ending::Halt(halt)) => ("halt", halt),
        Ok(Ending::ToolError(error)) => ("tool_error", error),
        Ok(Ending::Refusal(refusal)) => ("refused", refusal),
        Err(Fault::Denied(sentence)) => return answer(Err(("denied", sentence))),
        Err(Fault::Limit(sentence)) => return answer(Err(("limit", sentence))),
        Err(Fault::Unavailable(sentence)) => return answer(Err(("unavailable", sentence))),
    };
    format!(r#"{{"kind":"{kind}","ending":{ending}}}"#)
}
