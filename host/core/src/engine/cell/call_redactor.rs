//! Removes the values of secrets from a call's results, errors, events and printed bytes.
//!
//! Before a tool runs, [`CallRedactor::for_call`] fetches the secrets that were granted to it, adds
//! the values that the calling tools' redactor already knows, and installs itself for the call's
//! events. When the call ends, `answer` and `bytes` return the output with a mark in place of each
//! value. A value that the call gets later is added with `learn`, and removed from then on.
//! `is_foreign` tells if bytes hold a calling tool's secret that this tool may not read (it is not
//! revealed to it); the import `kv` refuses to store such bytes.
//! A redactor is built only for tools that were granted a secret, and for those that such tools
//! call, so that other calls do not pay for it. Too many values are an error of the call.
//! Not here: the encodings of a value ([`Redactor`]), and the fields of a result that are searched
//! ([`SecretRedactor`]).

use std::sync::Arc;

use futures_util::future::join_all;
use parking_lot::RwLock;
use toolcell_contract::grants::rights::{Request, Rights};
use toolcell_contract::outcome::tool_error::{Exit, ToolError};
use toolcell_contract::{call::CallResult, controls::enforced};

use super::resources::EngineResources;
use crate::secrets::redact::{Inflated, InflationWork, Redactor, Redactors};
use crate::secrets::{secret::Secret, secret_redactor::SecretRedactor};
use crate::tool::handler::Invocation;

/// The redactor of one call.
pub(crate) struct CallRedactor {
    redactors: Arc<Redactors>,
    /// Values of the tools that led to the call.
    inherited: Vec<Secret>,
    /// Those of them that the tool was not granted to read. `None`: there are none.
    foreign: Option<Redactor>,
    known: RwLock<Known>,
}

#[derive(Clone)]
struct Known {
    granted: Vec<(String, Secret)>,
    redactor: Redactor,
}

impl CallRedactor {
    /// Returns true if the tool, or a tool that led to the call, was granted a secret.
    pub(crate) fn is_needed(invocation: &Invocation, rights: &Rights) -> bool {
        rights.granted().has_secrets() || inherited(invocation).is_some()
    }

    /// Builds the redactor before the tool is called, since the tool may have kept a value from an
    /// earlier call.
    ///
    /// # Errors
    /// [`ToolError`] if there are too many values.
    pub(super) async fn for_call(
        resources: &EngineResources,
        invocation: &Invocation,
        rights: &Rights,
    ) -> Result<Arc<Self>, ToolError> {
        let names = rights.granted().secret_names(None);
        let tenant = invocation.context.tenant.as_deref();
        // A value that is not available now is requested again when it is used.
        let found = names.into_iter().map(str::to_owned).map(async |name| {
            let secret = resources.secrets.secret(tenant, &name).await.ok()?;
            Some((name, secret))
        });
        let named: Vec<_> = join_all(found).await.into_iter().flatten().collect();
        let too_many = || {
            tracing::error!("the tool was granted more secrets than can be hidden");
            ToolError::HandlerExit(Exit::ProcessEnded)
        };
        let redactors = Arc::clone(&resources.redactors);
        let inherited = inherited(invocation)
            .map_or_else(Vec::new, |SecretRedactor(redactor)| redactor.values().to_vec());
        let is_own = |value: &Secret| {
            named.iter().any(|(name, own)| {
                let request = Request::Reveal { name: name.into() };
                own.expose() == value.expose() && rights.is_granted(&request)
            })
        };
        let foreign: Vec<_> = inherited.iter().filter(|value| !is_own(value)).cloned().collect();
        let foreign = if foreign.is_empty() {
            None
        } else {
            Some(redactors.of(foreign).await.ok_or_else(too_many)?)
        };
        let redactor = redactors.of(values(&named, &inherited)).await.ok_or_else(too_many)?;
        let redactor = Arc::new(Self {
            redactors,
            inherited,
            foreign,
            known: RwLock::new(Known { granted: named, redactor }),
        });
        let over_events = Arc::clone(&redactor);
        if enforced!(ToldSecrets) {
            invocation
                .events
                .set_redactor(move |event| SecretRedactor(over_events.redactor()).event(event));
        }
        Ok(redactor)
    }

    /// Returns the current redactor.
    pub(crate) fn redactor(&self) -> Redactor {
        self.known.read().redactor.clone()
    }

    /// Returns true if these bytes hold the value of a secret of a tool that led to the call, which
    /// this tool was not granted to read. Compressed bytes that are too large to be searched count
    /// as such.
    pub(crate) fn is_foreign(&self, bytes: &[u8]) -> bool {
        let holds = |foreign: &Redactor| {
            let mut work = InflationWork::default();
            foreign.contains_value(bytes) || foreign.inflated(bytes, &mut work) != Inflated::Clean
        };
        self.foreign.as_ref().is_some_and(holds)
    }

    /// Returns the secrets that were granted to the tool, by name.
    pub(super) fn granted(&self) -> Vec<(String, Secret)> {
        self.known.read().granted.clone()
    }

    /// Adds a value that is about to be used, if it is not known yet. Returns false if that is not
    /// possible.
    #[must_use]
    pub(crate) async fn learn(&self, name: &str, value: &Secret) -> bool {
        loop {
            let Known { granted: mut named, redactor } = self.known.read().clone();
            if redactor.knows(value)
                && named.iter().any(|(_, known)| known.expose() == value.expose())
            {
                return true;
            }
            let before = named.len();
            named.push((name.to_owned(), value.clone()));
            let Some(redactor) = self.redactors.of(values(&named, &self.inherited)).await else {
                return false;
            };
            let mut known = self.known.write();
            // If another value was added meanwhile, try again, so that none is lost.
            if known.granted.len() == before {
                *known = Known { granted: named, redactor };
                return true;
            }
        }
    }

    /// Returns the end of a cell without the secrets.
    pub(crate) fn answer(
        &self,
        answer: Result<CallResult, ToolError>,
    ) -> Result<CallResult, ToolError> {
        let mut result = answer.unwrap_or_else(CallResult::ToolError);
        if let Some(redactor) = self.redactor_of_results() {
            result = SecretRedactor(redactor).result(result);
        }
        match result {
            CallResult::ToolError(error) => Err(error),
            result @ (CallResult::Outcome(_) | CallResult::Refusal(_)) => Ok(result),
        }
    }

    /// Returns bytes that a tool printed without the secrets.
    pub(crate) fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        match self.redactor_of_results() {
            Some(redactor) if redactor.contains_value(&bytes) => redactor.redact(&bytes),
            Some(_) | None => bytes,
        }
    }

    fn redactor_of_results(&self) -> Option<Redactor> {
        enforced!(ReturnedSecrets).then(|| self.redactor())
    }
}

/// Returns the redactor of the tools that led to a call.
fn inherited(invocation: &Invocation) -> Option<&SecretRedactor> {
    invocation.caller.as_ref()?.redactor.as_ref()
}

fn values(named: &[(String, Secret)], inherited: &[Secret]) -> Vec<Secret> {
    named.iter().map(|(_, value)| value).chain(inherited).cloned().collect()
}
