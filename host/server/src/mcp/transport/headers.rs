//! Reads the headers of MCP over HTTP: the accepted types, and the headers that repeat parts of the
//! body.
//!
//! The endpoint reads `Accept` with [`Accepted::of`]. In the era without sessions (revision
//! 2026-07-28) a client repeats the method, the name and some arguments in headers, by which
//! proxies route requests. [`check`] compares them with the body, and returns a sentence about the
//! first difference; the request is then refused, so that a proxy and the server never see
//! different requests. The schema of a tool marks such arguments with `x-mcp-header`. Numbers are
//! compared by value, and values can be in base64.
//!
//! Source: RFC 9110, section 12.5.1; MCP 2026-07-28, "Streamable HTTP"; docs/threat-model.md, row
//! 77.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName};
use serde_json::Value;

use crate::artifacts::members::each_member;
use crate::auth::single_header;
use crate::mcp::message::raw::Raw;
use crate::tenants::refused::shown;

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM: &str = "mcp-param-";
/// The prefix and suffix of a base64 value.
const CODED: (&str, &str) = ("=?base64?", "?=");

/// Returns the value of a header as text. `None` if it is missing, repeated or not text.
pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    single_header(headers, name).ok()?
}

/// The types of answers that the client accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) json: bool,
    /// True if `text/event-stream` is listed by name: `*/*` means JSON.
    pub(in crate::mcp) events: bool,
}

impl Accepted {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut accepted = Self { json: !headers.contains_key(ACCEPT), events: false };
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            // A weight of zero excludes the type.
            let is_zero = |weight: &str| weight.parse::<f32>().is_ok_and(|weight| weight == 0.0);
            if parts.any(|part| part.strip_prefix("q=").is_some_and(is_zero)) {
                continue;
            }
            accepted.json |= ["application/json", "application/*", "*/*"].contains(&kind.as_str());
            accepted.events |= kind == "text/event-stream";
        }
        accepted
    }
}

/// Compares the header of the method, if there is one, with the method of the body.
///
/// # Errors
/// The difference, as a sentence.
pub(super) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), String> {
    match single_value(headers, &METHOD)? {
        Some(value) if value != method => {
            let method = shown(method);
            Err(format!("the header `Mcp-Method` is not the method of the body, `{method}`"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Compares the headers of a request of the era without sessions with its body.
///
/// # Errors
/// The difference, as a sentence.
pub(super) fn check(
    headers: &HeaderMap,
    method: &str,
    params: &Raw,
    schema: Option<&Value>,
) -> Result<(), String> {
    if !headers.contains_key(METHOD) {
        return Err("the header `Mcp-Method` is missing".to_owned());
    }
    check_method(headers, method)?;
    let named = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    };
    if let Some(member) = named
        && let Some(name) = params.member(member).and_then(|name| name.text())
        && single_value(headers, &NAME)?.and_then(decoded).as_deref() != Some(&*name)
    {
        return Err(format!("the header `Mcp-Name` is not `{member}` of the body"));
    }
    let (Some(schema), "tools/call") = (schema, method) else { return Ok(()) };
    let arguments = params.member("arguments");
    let arguments = arguments.as_ref().map_or("{}", Raw::as_str);
    each_parameter(schema, Some(arguments), &mut |header, value| {
        check_parameter(headers, header, value)
    })
}

/// Calls `see` with the header and the value of each parameter that has a header. Each object of
/// the arguments is read once, however many parameters it has.
fn each_parameter(
    schema: &Value,
    value: Option<&str>,
    see: &mut impl FnMut(&str, Option<&str>) -> Result<(), String>,
) -> Result<(), String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    let mut found = HashMap::new();
    if let Some(value) = value {
        let _ = each_member(value, |name, text| {
            if let Some((name, _)) = properties.get_key_value(name) {
                found.insert(name, text);
            }
        });
    }
    for (name, property) in properties {
        let value = found.get(name).copied();
        if let Some(header) =
            property.get("x-mcp-header").and_then(Value::as_str).filter(|header| !header.is_empty())
        {
            see(header, value)?;
        }
        each_parameter(property, value, see)?;
    }
    Ok(())
}

fn check_parameter(headers: &HeaderMap, header: &str, value: Option<&str>) -> Result<(), String> {
    // No client can send a header with an invalid name.
    let Ok(name) = HeaderName::try_from(format!("{PARAM}{header}")) else { return Ok(()) };
    let sent = single_value(headers, &name)?;
    // Only strings, numbers and booleans are sent as headers.
    let value = value.filter(|value| *value != "null" && !value.starts_with(['{', '[']));
    match (sent, value) {
        (None, None) => Ok(()),
        (Some(sent), Some(value)) if decoded(sent).is_some_and(|sent| is_equal(&sent, value)) => {
            Ok(())
        }
        (Some(_), _) | (None, Some(_)) => {
            Err(format!("the header `Mcp-Param-{header}` is not the argument of the body"))
        }
    }
}

/// Returns true if a header has the value of this JSON. Numbers are compared by value: `1.0` equals
/// `1`.
fn is_equal(sent: &str, value: &str) -> bool {
    if value.starts_with('"') {
        return serde_json::from_str::<String>(value).is_ok_and(|value| value == sent);
    }
    // Whole numbers are compared by their digits.
    let has_fraction = [sent, value].iter().any(|number| number.contains(['.', 'e', 'E']));
    let number = |text: &str| serde_json::from_str::<f64>(text).ok();
    sent == value || has_fraction && number(sent).is_some() && number(sent) == number(value)
}

/// Returns the value of a header, or an error if it is repeated or not text.
fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, String> {
    single_header(headers, name)
        .map_err(|()| format!("the header `{name}` is repeated or is not text"))
}

/// Decodes a header's value, which can be in base64.
fn decoded(value: &str) -> Option<String> {
    let (before, after) = CODED;
    match value.strip_prefix(before).and_then(|value| value.strip_suffix(after)) {
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn parameters_are_compared_at_each_depth() {
        let schema = serde_json::json!({"properties": {
            "id": {"x-mcp-header": "Id"},
            "to": {"properties": {"city": {"x-mcp-header": "City"}, "zip": {"x-mcp-header": "Zip"}}},
        }});
        let arguments = r#"{"to": {"other": [1], "city": "Oslo"}, "id": 100000000000000000001}"#;
        let mut seen = Vec::new();
        let see = &mut |header: &str, value: Option<&str>| {
            seen.push(format!("{header}: {value:?}"));
            Ok(())
        };
        assert_eq!(each_parameter(&schema, Some(arguments), see), Ok(()));
        let expected =
            [r#"Id: Some("100000000000000000001")"#, r#"City: Some("\"Oslo\"")"#, "Zip: None"];
        assert_eq!(seen, expected);
        assert!(!is_equal("100000000000000000002", "100000000000000000001"));
        assert!(is_equal("1.0", "1"));
    }

    #[test]
    fn accept_header_selects_json_or_event_stream() {
        for (accept, json, events) in
            rows::<(Option<&str>, bool, bool)>("mcp/transport/headers", "accepts")
        {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(Accepted::of(&headers), Accepted { json, events }, "{accept:?}");
        }
    }

    #[test]
    fn numbers_in_headers_are_compared_as_numbers() {
        for (sent, value, is_same) in rows::<(&str, &str, bool)>("mcp/transport/headers", "numbers")
        {
            assert_eq!(is_equal(sent, value), is_same, "{sent} {value}");
        }
    }
}
