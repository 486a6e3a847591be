//! Maps the spans and fields of `tracing` to the names of OpenTelemetry.
//!
//! The layer collects the fields of a span in [`Fields`]. When the span ends, [`described`] returns
//! its name, kind, attributes and status in OpenTelemetry's terms. There are three kinds of spans:
//! a request, a call of a tool, and a call of a tool into the host. Spans and fields that are not
//! in the tables are not exported; a text has at most 256 bytes, except for those of the trace
//! context.
//!
//! Source: OpenTelemetry semantic conventions 1.38: `execute_tool` spans of GenAI, server spans of
//! MCP, HTTP spans.

use std::fmt::Debug;

use opentelemetry::trace::SpanKind;
use opentelemetry::{Key, KeyValue, Value};
use tracing::field::{Field, Visit};

/// The spans that are exported.
pub(super) const NAMES: [&str; 3] = ["request", "tool_call", "host_call"];
/// The most bytes of a text.
const MAX_TEXT: usize = 256;

/// The fields of a request and their attributes. A request of MCP also has `mcp.method.name`.
const REQUEST: [(&str, &str); 5] = [
    ("id", "toolcell.request.id"),
    ("method", "http.request.method"),
    ("route", "http.route"),
    ("status", "http.response.status_code"),
    ("mcp", "mcp.method.name"),
];
/// The fields of a call of a tool.
const CALL: [(&str, &str); 5] = [
    ("id", "gen_ai.tool.call.id"),
    ("tool", "gen_ai.tool.name"),
    ("request_id", "toolcell.request.id"),
    ("outcome", "toolcell.outcome"),
    ("reason", "error.type"),
];
/// The fields of a call into the host.
const HOST_CALL: [(&str, &str); 7] = [
    ("module", "toolcell.import"),
    ("function", "toolcell.function"),
    ("method", "http.request.method"),
    ("host", "server.address"),
    ("port", "server.port"),
    ("status", "http.response.status_code"),
    ("error", "error.type"),
];
/// The fields of the trace that a request continues.
const TRACE: [&str; 4] = ["trace_id", "parent_id", "trace_flags", "trace_state"];

/// The fields of one span.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    /// Returns a field that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        if let Value::String(text) = self.get(name)? { Some(text.as_str()) } else { None }
    }

    fn number(&self, name: &str) -> Option<i64> {
        if let Value::I64(number) = self.get(name)? { Some(*number) } else { None }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        let name = field.name();
        let tables = REQUEST.iter().chain(&CALL).chain(&HOST_CALL).map(|(known, _)| known);
        if !tables.chain(&TRACE).any(|known| *known == name) {
            return;
        }
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.into()));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let limit = if TRACE.contains(&field.name()) { usize::MAX } else { MAX_TEXT };
        self.set(field, value[..value.floor_char_boundary(limit)].to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// A span in OpenTelemetry's terms.
pub(super) struct Described {
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) has_failed: bool,
}

/// Converts the span of this name.
pub(super) fn described(span: &str, fields: &Fields) -> Described {
    match span {
        "request" => request(fields),
        "tool_call" => call(fields),
        _ => host_call(fields),
    }
}

fn request(fields: &Fields) -> Described {
    let mut attributes = attributes(fields, &REQUEST);
    let name = match (fields.text("mcp"), fields.text("tool")) {
        (Some(method), tool) => {
            attributes.extend(tool.map(|tool| KeyValue::new("gen_ai.tool.name", tool.to_owned())));
            if method == "tools/call" {
                attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
            }
            joined(method, tool)
        }
        (None, _) => joined(fields.text("method").unwrap_or("request"), fields.text("route")),
    };
    let failed = failed_status(fields, 500);
    let has_failed = failed.is_some();
    attributes.extend(failed);
    Described { name, kind: SpanKind::Server, attributes, has_failed }
}

fn call(fields: &Fields) -> Described {
    let mut attributes = attributes(fields, &CALL);
    attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
    let has_failed = matches!(fields.text("outcome"), Some("error" | "tool_error" | "refusal"));
    if has_failed && fields.text("reason").is_none() {
        attributes.push(KeyValue::new("error.type", "tool_error"));
    }
    let name = joined("execute_tool", fields.text("tool"));
    Described { name, kind: SpanKind::Internal, attributes, has_failed }
}

fn host_call(fields: &Fields) -> Described {
    let mut attributes = attributes(fields, &HOST_CALL);
    let module = fields.text("module").unwrap_or("host");
    let is_request = module == "http" || module == "wasi:http";
    let (name, kind) = match fields.text("method") {
        Some(method) if is_request => (method.to_owned(), SpanKind::Client),
        Some(_) | None => (joined(module, fields.text("function")), SpanKind::Internal),
    };
    let failed = failed_status(fields, 400);
    let has_failed = failed.is_some() || fields.text("error").is_some();
    attributes.extend(failed);
    Described { name, kind, attributes, has_failed }
}

/// Returns the attribute of an HTTP status that is a failure: `least` or higher.
fn failed_status(fields: &Fields, least: i64) -> Option<KeyValue> {
    let failed = fields.number("status").filter(|status| *status >= least)?;
    Some(KeyValue::new("error.type", failed.to_string()))
}

fn attributes(fields: &Fields, table: &[(&'static str, &'static str)]) -> Vec<KeyValue> {
    let named = table.iter().filter_map(|(field, name)| Some((*name, fields.get(field)?.clone())));
    named.map(|(name, value)| KeyValue::new(Key::from_static_str(name), value)).collect()
}

fn joined(first: &str, second: Option<&str>) -> String {
    match second {
        Some(second) => format!("{first} {second}"),
        None => first.to_owned(),
    }
}
