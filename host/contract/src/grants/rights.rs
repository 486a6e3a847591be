//! Decides if a tool may make a request, and names the layer that denies it.
//!
//! [`Rights`] are the intersection of layers: the tool's declared needs (the accesses that its
//! author lists), the grants of its component, the operator's overlay for this tool, the overlays
//! of the tenant and of the call, and, if another tool made the call, the rights of that tool. A
//! layer can only take away. [`Rights::allows`] takes a [`Request`], such as "GET this URL" or
//! "read this path", and returns a [`Decision`]. A [`Denial`] says which layer denies, and which
//! smallest grant would allow the request, so that an operator can paste it.
//!
//! The decision is pure, and one value decides everywhere: when a component is loaded, when its
//! tool makes a request, and when an operator asks for an explanation.
//!
//! Source: docs/contract.md, section 7.

mod caller;
mod request;
mod suggestion;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::rule::TOO_MANY;
use super::{
    Access, GrantKind, Grants, HttpRule, InvalidRule, InvokeRule, Overlay, SCRATCH, is_below,
};
use crate::controls::enforced;
use crate::definition::{Definition, Need};
use crate::names::shorten;

pub use request::Request;
pub use suggestion::{Suggestion, toml_text};

/// A layer that narrows the rights of a tool.
///
/// # Shape
/// As JSON: its name in `snake_case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layer {
    /// The tool's own definition does not declare this need.
    Declaration,
    /// The component does not have this grant.
    Component,
    /// The component has this grant, but not this tool.
    Tool,
    /// The tenant's overlay does not allow the request.
    Tenant,
    /// The call's overlay does not allow the request.
    Call,
    /// Another tool made the call, and that tool does not have this right.
    Caller,
    /// The request contains the value of a secret that is not bound to its destination, or would
    /// store the value of a secret of the calling tool.
    Secrets,
    /// The host of the request is on a private network that the rule which grants the request does
    /// not name.
    Network,
    /// The host does not offer this to any tool, for example a socket.
    Host,
}

impl Layer {
    /// Returns the words after "is denied".
    fn words(self) -> &'static str {
        match self {
            Self::Declaration => ": the tool does not declare that it needs it",
            Self::Component => ": it was not granted",
            Self::Tool => " for this tool",
            Self::Tenant => " for this tenant",
            Self::Call => " for this call",
            Self::Caller => ": the tool that made this call does not have this right",
            Self::Secrets => {
                ": it contains the value of a secret that is not bound to its destination"
            }
            Self::Network => ": its host is on a private network that its grant does not name",
            Self::Host => ": no tool gets a socket",
        }
    }
}

/// The decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed.
    Allowed,
    /// The request is denied.
    Denied(Denial),
}

/// A request that is not within a tool's rights.
///
/// # Shape
/// As JSON: `{"layer", "request", "grant"}`; `grant` is `null` if no grant can allow the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("`{request}` is denied{}", .layer.words())]
#[non_exhaustive]
pub struct Denial {
    /// The first layer that denies the request.
    pub layer: Layer,
    /// The request, in the notation of [`Request`].
    pub request: String,
    /// The smallest grant that would allow the request, as a line of configuration; absent if no
    /// grant can.
    pub grant: Option<String>,
}

impl Denial {
    #[doc(hidden)]
    #[must_use]
    pub fn new(layer: Layer, request: String, grant: Option<String>) -> Self {
        Self { layer, request, grant }
    }

    /// Creates the denial of a request by a layer, with the smallest grant that would allow it.
    fn of(layer: Layer, request: &Request<'_>) -> Self {
        let suggestion = Suggestion::of(request);
        let grant = (!suggestion.is_empty()).then(|| suggestion.lines().concat());
        let request = request.to_string();
        if request.len() > MAX_REQUEST {
            // The text is untrusted. Its start is enough to recognise it, and it is not suggested
            // as a rule.
            return Self { layer, request: shorten(&request, MAX_REQUEST / 8), grant: None };
        }
        Self { layer, request, grant }
    }

    /// Creates the denial of a request to a host that is only on a private network. The suggested
    /// grant names the network if no name was resolved to find it, and otherwise a
    /// [`Suggestion::PLACEHOLDER`]: observers of a call may be other people than its operator.
    #[doc(hidden)]
    pub fn by_network(request: &Request<'_>) -> Self {
        let mut denial = Self::of(Layer::Network, request);
        if let Request::Http { method, target } = request
            && let Some(grant) = &mut denial.grant
        {
            *grant = Suggestion::of_private(&HttpRule::smallest(*method, target)).lines().concat();
        }
        denial
    }

    /// Creates the denial of a request that holds the value of a secret. No grant can allow it.
    #[doc(hidden)]
    pub fn by_secrets(request: &Request<'_>) -> Self {
        Self { grant: None, ..Self::of(Layer::Secrets, request) }
    }

    /// Creates the denial of a request for something that the host does not offer to any tool.
    #[doc(hidden)]
    pub fn by_host(request: String) -> Self {
        Self { layer: Layer::Host, request, grant: None }
    }

    /// Returns what to do about the denial, in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        let by = |how: &str| match &self.grant {
            Some(grant) => format!("to allow it, {how}: {grant}"),
            None => "no grant can allow it: the request cannot be written as a grant".to_owned(),
        };
        match self.layer {
            Layer::Declaration => {
                let declaration =
                    Request::parse(&self.request).map_or_else(|_| "…".to_owned(), |asked| asked.declaration());
                format!("no grant can allow this; its author can declare the need: {declaration}, with a reason")
            }
            Layer::Component => by("grant"),
            Layer::Tool => by("add to the rules of the tool"),
            Layer::Tenant => by("add to the rules of the tenant"),
            Layer::Call => by("add to the overlay of the call"),
            Layer::Caller => {
                "to allow it, let this tool keep its own rights: grant the calling tool invoke = [\"own NAME\"]"
                    .to_owned()
            }
            Layer::Network => by("write in place of the rule that grants the request"),
            Layer::Host => "no grant allows it: to reach a server, use HTTP".to_owned(),
            Layer::Secrets => {
                "do not send the value: let the host put the secret into requests to which a grant binds it".to_owned()
            }
        }
    }
}

/// The pattern of an `invoke` need that covers every tool that is granted.
const ANY_TOOL: &str = "*";

/// Bytes. A denial quotes a shorter request in full; paths, keys and URLs of ordinary use are
/// shorter.
const MAX_REQUEST: usize = 1 << 10;

/// The rights of one tool. Cheap to clone.
///
/// # Defaults
/// No rights.
#[derive(Debug, Clone, Default)]
pub struct Rights {
    granted: Arc<Grants>,
    declared: Option<Arc<Overlay>>,
    tool: Option<Arc<Overlay>>,
    tenant: Option<Arc<Overlay>>,
    call: Option<Arc<Overlay>>,
    /// The rights of the tool that made the call.
    caller: Option<Arc<Rights>>,
    tool_name: Arc<str>,
}

impl Rights {
    /// Creates the rights of the only tool of a component under these grants. Otherwise as
    /// [`in_component`](Self::in_component).
    ///
    /// # Errors
    /// [`InvalidRule`] if the definition declares a need that cannot be read.
    pub fn new(granted: Arc<Grants>, definition: &Definition) -> Result<Self, InvalidRule> {
        Self::in_component(granted, definition, std::slice::from_ref(definition))
    }

    /// Creates the rights of a tool under these grants. `tools` are all tools of its component. If
    /// one of them declares needs ([`Definition::declares_needs`]), each gets only what it
    /// declares, and a tool that declares nothing gets nothing. If none declares needs, each gets
    /// everything that is granted: the component's imports are the declaration.
    ///
    /// # Errors
    /// [`InvalidRule`] if the definition declares a need that cannot be read.
    pub fn in_component(
        granted: Arc<Grants>,
        definition: &Definition,
        tools: &[Definition],
    ) -> Result<Self, InvalidRule> {
        let others_count = enforced!(SilentTools);
        let is_narrowed = !definition.needs.is_empty()
            || others_count && tools.iter().any(Definition::declares_needs);
        let declared =
            if is_narrowed { Some(Arc::new(declared(&definition.needs)?)) } else { None };
        let rights =
            Self { declared, tool_name: definition.name.as_str().into(), ..Self::default() };
        Ok(rights.with_granted(granted))
    }

    /// Returns the rights of the same tool under other grants, without an overlay of a tenant or a
    /// call.
    #[must_use]
    pub fn with_granted(&self, granted: Arc<Grants>) -> Self {
        let tool = granted.tools.get(&*self.tool_name).cloned().map(Arc::new);
        let (declared, tool_name) = (self.declared.clone(), Arc::clone(&self.tool_name));
        Self { granted, declared, tool, tenant: None, call: None, caller: None, tool_name }
    }

    /// Returns these rights, narrowed by the overlays of a tenant and a call.
    #[must_use]
    pub fn narrowed(&self, tenant: Option<Arc<Overlay>>, call: Option<Arc<Overlay>>) -> Self {
        Self { tenant, call, ..self.clone() }
    }

    /// Returns these rights, narrowed to those of the tool that makes the call.
    #[doc(hidden)]
    pub fn within_caller(&self, caller: Option<Arc<Self>>) -> Self {
        Self { caller, ..self.clone() }
    }

    /// Returns the name of the store of the tool's component.
    #[doc(hidden)]
    pub fn store(&self) -> &str {
        self.granted.store.as_deref().unwrap_or_default()
    }

    /// Returns the grants of the component, before any layer narrows them.
    #[must_use]
    pub fn granted(&self) -> &Grants {
        &self.granted
    }

    /// Returns true if the request was granted, before any layer narrows the grants.
    #[doc(hidden)]
    pub fn is_granted(&self, request: &Request<'_>) -> bool {
        request.is_granted(&self.granted)
    }

    /// Decides if all layers allow a request.
    #[must_use]
    pub fn allows(&self, request: &Request<'_>) -> Decision {
        let within = |overlay: &Option<Arc<Overlay>>| {
            overlay.as_ref().is_none_or(|overlay| request.within(overlay))
        };
        let layer = if !within(&self.declared) && enforced!(Declared) {
            Layer::Declaration
        } else if !request.is_granted(&self.granted) && enforced!(Granted) {
            Layer::Component
        } else if !within(&self.tool) && enforced!(ToolOverlay) {
            Layer::Tool
        } else if !within(&self.tenant) && enforced!(TenantOverlay) {
            Layer::Tenant
        } else if !within(&self.call) && enforced!(CallOverlay) {
            Layer::Call
        } else if !self.caller_allows(request) {
            Layer::Caller
        } else {
            return Decision::Allowed;
        };
        Decision::Denied(Denial::of(layer, request))
    }

    /// Stands in [`effective`](Self::effective) for more rules than are compared.
    #[doc(hidden)]
    pub const TOO_MANY: &str = TOO_MANY;

    /// Returns the rules of a kind that all layers leave, in the notation of a configuration. The
    /// rights of a calling tool are left out.
    #[doc(hidden)]
    #[must_use]
    pub fn effective(&self, kind: GrantKind) -> Vec<String> {
        let layers = [&self.declared, &self.tool, &self.tenant, &self.call];
        let layers: Vec<&Overlay> = layers.into_iter().flatten().map(|layer| &**layer).collect();
        self.granted.remaining(kind, &layers)
    }

    /// Returns the paths that may be opened of the directory with this name and access: the topmost
    /// paths at or below it that all layers allow, and below a path that may only be read, those
    /// that may be written.
    #[doc(hidden)]
    pub fn openings(&self, name: &str, granted: Access) -> Vec<(String, Access)> {
        let rules = self.overlays().filter_map(|overlay| overlay.paths.as_ref()).flatten();
        // Sorted, so that a parent path comes before the paths below it.
        let paths: BTreeSet<_> = rules
            .map(|rule| rule.below())
            .filter(|path| is_below(path, name))
            .chain([name])
            .collect();
        let scratch = self.granted.scratch.map(|_| SCRATCH);
        let others = || {
            self.granted.directories.iter().map(|directory| directory.name.as_str()).chain(scratch)
        };
        let is_ours =
            |path: &str| !others().any(|other| other.len() > name.len() && is_below(path, other));
        let allowed = |access, path: &str| {
            access <= granted
                && self.allows(&Request::File { access, path: path.into() }) == Decision::Allowed
        };
        let mut openings = Vec::<(String, Access)>::new();
        for path in paths.into_iter().filter(|path| is_ours(path)) {
            let Some(access) =
                [Access::Write, Access::Read].into_iter().find(|access| allowed(*access, path))
            else {
                continue;
            };
            if !openings.iter().any(|(upper, more)| access <= *more && is_below(path, upper)) {
                openings.push((path.to_owned(), access));
            }
        }
        openings
    }
}

/// Turns declared needs into a layer. A kind that is not declared is not needed.
fn declared(needs: &[Need]) -> Result<Overlay, InvalidRule> {
    let mut overlay = Overlay::deny_all();
    for Need { kind, pattern, .. } in needs {
        match GrantKind::of_need(kind) {
            Some(GrantKind::Invoke) if pattern == ANY_TOOL => {}
            // The operator decides with whose rights the other tool runs.
            Some(GrantKind::Invoke) => {
                let rule = pattern.parse::<InvokeRule>()?.with_own_rights();
                overlay.invoke.get_or_insert_default().push(rule);
            }
            Some(kind) => overlay.narrow(kind, &[pattern])?,
            None => {
                let hint = format!("a need is {}", GrantKind::listed(|row| [row.need]));
                return Err(InvalidRule::new(kind, "unknown kind of need", hint));
            }
        }
    }
    if needs.iter().any(|need| need.kind == "invoke" && need.pattern == ANY_TOOL) {
        overlay.invoke = None;
    }
    Ok(overlay)
}

/// Returns the lines of configuration that would grant every declared need.
#[doc(hidden)]
pub fn grants_declared(needs: &[Need]) -> Vec<String> {
    needs.iter().flat_map(|need| Suggestion::of_need(need).lines()).collect()
}

#[cfg(test)]
mod tests;
