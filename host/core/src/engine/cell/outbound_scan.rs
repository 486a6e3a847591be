//! Collects the secrets that one request of a call must be scanned for.
//!
//! Both imports that send HTTP requests (`http` and `wasi:http`) call [`Scope::secrets`] with
//! the credentials to add. It asks the secret source of the embedder (the program that uses this
//! library) for all values that no request of the tenant may contain, adds the tool's own values
//! with the requests that they are bound to, and returns [`Secrets`] for
//! [`http`](crate::capability::http), which scans the request.
//! If the host's secrets cannot be read, or are too many to search for, the result is an error and
//! nothing is sent.

use std::sync::Arc;

use toolcell_contract::controls::enforced;
use toolcell_contract::grants::rights::{Decision, Request};

use super::Scope;
use crate::capability::http::{Credential, OutboundScan, Secrets, SendError};

impl Scope {
    /// Returns the secrets to scan a request with these credentials for.
    ///
    /// # Errors
    /// [`SendError::Invalid`] if the host's secrets cannot be read, or are too many to scan for.
    pub(crate) async fn secrets(&self, credentials: Vec<Credential>) -> Result<Secrets, SendError> {
        let Self { resources, invocation, rights, redactor: call_redactor, .. } = self;
        let mut others = resources.secrets.known(invocation.context.tenant.as_deref()).await.map_err(|error| {
            tracing::error!(%error, "the host's secrets cannot be read, so a request could not be searched for them");
            unscreened()
        })?;
        let named = call_redactor.as_ref().map(|redactor| redactor.granted()).unwrap_or_default();
        let own = call_redactor.as_ref().map(|redactor| redactor.redactor());
        others.retain(|other| own.as_ref().is_none_or(|own| !own.knows(other)));
        let others = resources.redactors.of_whole(others).await.ok_or_else(unscreened)?;
        let bound = named.into_iter().filter_map(|(name, value)| {
            let used = rights.granted().secrets.get(&name)?;
            let is_allowed =
                rights.allows(&Request::Secret { name: name.into() }) == Decision::Allowed;
            is_allowed.then(|| (used.destination.clone(), value))
        });
        let invocation = Arc::clone(invocation);
        let screen = OutboundScan {
            others,
            own,
            bound: bound.collect(),
            on_suspect: Box::new(move |kind| invocation.report_suspect_request(kind)),
        };
        let redactor = call_redactor.as_ref().filter(|_| enforced!(LaterAnswers));
        let redactor = redactor.map(|redactor| redactor.redactor());
        Ok(Secrets { credentials, redactor, scan: Some(screen) })
    }
}

fn unscreened() -> SendError {
    SendError::Invalid(
        "the request was not sent: the host cannot check it for secrets at the moment".to_owned(),
    )
}
