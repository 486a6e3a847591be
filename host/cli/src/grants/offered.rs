//! Explains that a tenant is not offered a tool.
//!
//! The section of a tenant can have a list `tools`; a tool outside of it does not exist for that
//! tenant. `explain` and `learn` call `NotOffered::first_not_offered` with the tenant and the names
//! of the tools that a request involves. It returns the first one that is not offered, with the
//! list in its written form and its line, to print as the decision or as a warning with a hint.
//!
//! Not here: the enforcement, in `toolcell-config`. A call of such a tool is answered like one of a
//! tool that does not exist.

use serde_json::{Value, json};
use toolcell::grants::{Request, toml_text};

use super::rule_lines::{Item, RuleLines};
use crate::config::Config;

/// A tool that a tenant is not offered.
pub(crate) struct NotOffered<'a> {
    tenant: &'a str,
    tool: &'a str,
    file: &'a str,
    /// The list in its written form.
    list: Option<Item>,
}

impl<'a> NotOffered<'a> {
    /// Returns the first of these tools that the tenant is not offered.
    pub(crate) fn first_not_offered(
        config: &'a Config,
        tenant: Option<&'a str>,
        tools: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let tool = tools.into_iter().find(|tool| !config.offers(tenant, tool))?;
        let tenant = tenant?;
        let lines = RuleLines::read(config);
        let list = lines.and_then(|lines| lines.setting(&["tenants", tenant, "tools"]));
        Some(Self { tenant, tool, file: config.file.as_deref().unwrap_or_default(), list })
    }

    /// Returns the sentence that says so, with the list that leaves the tool out.
    pub(crate) fn sentence(&self) -> String {
        let Self { tenant, tool, file, list } = self;
        let by = match list {
            Some(Item { text, line, .. }) => format!(", by `{text}` (`{file}`, line {line})"),
            None => String::new(),
        };
        format!("the tenant `{tenant}` is not offered the tool `{tool}`{by}")
    }

    /// Returns the advice for the operator.
    pub(crate) fn hint(&self) -> String {
        format!("to offer it, add {} to `tools` in [tenants.{}]", toml_text(self.tool), self.tenant)
    }

    /// Returns the JSON members: the denial, and the rule that decided.
    pub(crate) fn to_json(&self, request: &Request<'_>) -> (Value, Value) {
        let grant = format!("tools = [{}]", toml_text(self.tool));
        let denial = json!({ "layer": "tenant", "request": request.to_string(), "grant": grant });
        let Self { file, list, .. } = self;
        let list = list.as_ref();
        let list = list.map(|list| json!({ "file": file, "line": list.line, "rule": list.text }));
        (denial, json!(list))
    }
}
