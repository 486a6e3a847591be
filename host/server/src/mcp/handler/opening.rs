//! Opens sessions, and checks the metadata of requests without one.
//!
//! The transports call [`Handler::initialize`] for the request `initialize`. It checks the params
//! and returns the server's description of itself (revision, capabilities, instructions) and the
//! capabilities that the client declared. An unknown revision is answered with one that the server
//! has. For a request without a session, [`check_metadata`] refuses an unsupported revision and
//! metadata that are not complete. [`Handler::header_schema`] gives the schema by which the
//! endpoint compares headers with arguments; a tool that decides its own visibility has none,
//! because an error would show it.

use rmcp::model::{
    ErrorData, Implementation, ProtocolVersion, ResourcesCapability, ServerCapabilities,
    ServerConfig, ToolsCapability,
};
use serde_json::{Map, Value};

use super::definitions::has_header_parameters;
use super::{Handler, VERSIONS};
use crate::mcp::request::{self, Answer};
use crate::mcp::{message::meta::Meta, message::raw::Raw, session::client::MAX_CAPABILITIES};

/// The instructions if the list of tools is empty.
const NO_TOOLS: &str = "This server offers no tools to you now. `toolcell serve` offers those of components that its operator has \
                        approved: `toolcell check` says what is missing, and `toolcell approve` approves.";

impl Handler {
    /// Returns the schema of the arguments, if some of them are also sent as headers.
    pub(in crate::mcp) fn header_schema(&self, name: &str) -> Option<Value> {
        let view = self.service.view(&self.principal).ok()?;
        match view.tools.get(name) {
            // A tool that decides its own visibility must not be revealed by an error.
            Some(tool) if tool.definition().checks.visible => None,
            Some(tool) => {
                let parameters = tool.definition().parameters.as_ref();
                parameters.filter(|schema| has_header_parameters(schema)).cloned()
            }
            None => {
                let tools = self.options.extension.tools(&self.principal);
                let tool = tools.into_iter().find(|tool| tool.name == name)?;
                Some(tool.input_schema.as_ref().clone().into())
            }
        }
    }

    fn capabilities(&self) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::default();
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
        capabilities.logging = Some(Map::new());
        if self.service.artifacts().is_some() {
            capabilities.resources = Some(ResourcesCapability::default());
        }
        self.options.extension.capabilities(&mut capabilities);
        capabilities
    }

    pub(in crate::mcp) fn info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(self.capabilities());
        info.protocol_version = ProtocolVersion::V_2025_11_25;
        info.server_info = Implementation::new(&self.options.name, env!("CARGO_PKG_VERSION"));
        info.instructions.clone_from(&self.options.instructions);
        let view = self.service.view(&self.principal);
        if view.is_ok_and(|view| view.tools.is_empty())
            && self.options.extension.tools(&self.principal).is_empty()
        {
            let texts = info.instructions.iter().map(String::as_str).chain([NO_TOOLS]);
            info.instructions = Some(texts.collect::<Vec<_>>().join("\n"));
        }
        info
    }

    /// Opens a session. Returns the answer, and the capabilities that the client declared.
    ///
    /// # Errors
    /// If the params do not fit.
    pub(in crate::mcp) fn initialize(&self, params: &Raw) -> Result<(Answer, Raw), ErrorData> {
        let [version, capabilities, client] =
            params.members(["protocolVersion", "capabilities", "clientInfo"]);
        let unfit = |what: &str| {
            ErrorData::invalid_params(format!("the params do not fit `initialize`: {what}"), None)
        };
        let version = version.and_then(|version| version.text());
        let version = version.ok_or_else(|| unfit("`protocolVersion` is not a text"))?;
        let capabilities = capabilities
            .filter(Raw::is_object)
            .ok_or_else(|| unfit("`capabilities` is not an object"))?;
        if capabilities.as_str().len() > MAX_CAPABILITIES {
            return Err(unfit(&format!("`capabilities` has more than {MAX_CAPABILITIES} bytes")));
        }
        let named = client.map(|client| client.members(["name", "version"])).unwrap_or_default();
        if named.iter().any(|member| member.as_ref().is_none_or(|member| member.text().is_none())) {
            return Err(unfit("`clientInfo` has no `name` or no `version`"));
        }
        let mut info = self.info();
        let mut served =
            VERSIONS.into_iter().filter(|served| *served != ProtocolVersion::V_2026_07_28);
        if let Some(asked) = served.find(|served| served.as_str() == version) {
            info.protocol_version = asked;
        }
        // Copied, so that the rest of the message is not kept with the session.
        Ok((request::to_raw_json(&info)?, capabilities.copied()))
    }
}

/// Checks the metadata of a request that must be self-contained.
///
/// # Errors
/// A revision that is not supported, or missing members.
pub(in crate::mcp) fn check_metadata(meta: &Meta) -> Result<(), ErrorData> {
    if let Some(version) = &meta.version
        && !VERSIONS.iter().any(|served| served.as_str() == version)
    {
        return Err(ErrorData::unsupported_protocol_version(unknown(version), &VERSIONS));
    }
    check_complete(meta)
}

/// Checks that a request has the metadata that make it self-contained.
pub(super) fn check_complete(meta: &Meta) -> Result<(), ErrorData> {
    let missing = meta.missing();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("`_meta` of the request has no valid {}", missing.join(", "));
    Err(ErrorData::invalid_params(text, None))
}

/// Returns an unsupported revision, truncated.
pub(in crate::mcp) fn unknown(version: &str) -> ProtocolVersion {
    let version: String = version.chars().take(40).collect();
    serde_json::from_value(version.into()).unwrap_or_default()
}
