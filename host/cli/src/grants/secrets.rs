//! Tells where the values of secrets come from, and which calls a missing one refuses; the values
//! are never shown.
//!
//! A secret's value can come from a variable or a file, and a tenant can have its own. [`origin`]
//! takes the configuration and the name of a secret and returns its sources in words, the shared
//! one first. [`lines`] and [`to_json`] do so for all secrets: the first as one line for each
//! secret of which a tenant has its own value, the second as an object. The host refuses calls of a
//! tool that may use a secret whose value is not set: [`problem_text`] says so in one sentence,
//! equally in every command.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::config::{Config, Problem};
use crate::print::clean;

/// Returns the sources of the tenants' own values of a secret.
fn tenant_sources<'a>(config: &'a Config, secret: &str) -> BTreeMap<&'a str, String> {
    let own = config
        .tenants
        .iter()
        .filter_map(|(name, tenant)| Some((name.as_str(), tenant.secrets.origins.get(secret)?)));
    own.map(|(tenant, origin)| (tenant, origin.to_string())).collect()
}

/// Returns the source of the shared value, followed by those of the tenants' own values, in words.
pub(crate) fn origin(config: &Config, secret: &str) -> String {
    let shared = config.origins.get(secret).map(ToString::to_string).unwrap_or_default();
    let own = tenant_sources(config, secret);
    let own = own.iter().map(|(tenant, origin)| format!("; for the tenant {tenant} from {origin}"));
    format!("{shared}{}", own.collect::<String>())
}

/// Returns a line for each secret of which a tenant has its own value.
pub(crate) fn lines(config: &Config) -> Vec<String> {
    let secrets = config.origins.keys().filter(|name| !tenant_sources(config, name).is_empty());
    secrets
        .map(|name| clean::escaped(&format!("secret {name}: from {}", origin(config, name))))
        .collect()
}

/// Returns the sources of every secret, by name.
pub(crate) fn to_json(config: &Config) -> Value {
    let secrets = config.origins.iter().map(|(name, origin)| {
        let tenants = tenant_sources(config, name);
        (name.clone(), json!({ "source": origin.to_string(), "tenants": tenants }))
    });
    Value::Object(secrets.collect())
}

/// Returns a sentence with the problem, the place in the configuration, and the tools whose calls
/// are refused.
pub(crate) fn problem_text(problem: &Problem, tools: &[impl AsRef<str>]) -> String {
    let names: Vec<_> = tools.iter().map(|tool| format!("`{}`", tool.as_ref())).collect();
    match names.as_slice() {
        [] => format!("{problem}; no tool may use it, so no call is refused"),
        [only] => format!("{problem}; calls of the tool {only} are refused"),
        several => format!("{problem}; calls of the tools {} are refused", several.join(", ")),
    }
}
