//! Lists the names of the methods of MCP, for traces.
//!
//! The endpoint writes the method of each request into its tracing span. [`known_method`] returns
//! the name if it is in the list, else `other`, because a client can invent names without limit.
//! Not here: the code of the methods, in `mcp/handler.rs`.

const METHODS: [&str; 20] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "completion/complete",
    "logging/setLevel",
    "roots/list",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];

/// Returns the name of a method in traces. An unknown method is `other`.
pub(super) fn known_method(method: &str) -> &'static str {
    METHODS.into_iter().find(|known| *known == method).unwrap_or("other")
}
