//! The names of the methods of MCP, and how traces call a method.

const METHODS: [&str; 16] = [
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
];
const NOTIFICATIONS: [&str; 4] = [
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];

/// The name of a method in traces. What a client made up is `other`.
pub(super) fn known_method(method: &str) -> &'static str {
    let known = METHODS.into_iter().chain(NOTIFICATIONS);
    known.into_iter().find(|known| *known == method).unwrap_or("other")
}
