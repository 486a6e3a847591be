//! Implements the imports `secrets` and `reveal`, by which a guest uses or reads its secrets.
//!
//! `secrets.get` takes a name and returns a handle, if the tool was granted this secret. The guest
//! (the WebAssembly code of a tool) passes the handle with a request, and the host adds the value;
//! the guest never sees it. `reveal.value` returns the value itself to tools that were granted to
//! read it. The value is registered with the call redactor first, which removes it from all that
//! the tool returns.
//! A refusal is text with a hint for the operator. If the value cannot be obtained, the guest
//! learns no reason, since that could name a place on the host. In a dry run (a call that records
//! what it would need) `reveal` returns a fixed text.

use toolcell_contract::grants::rights::{Denial, Request};
use tracing::Instrument as _;
use wasmtime::component::{HasSelf, Linker, Resource};

use crate::engine::cell::bindings::toolcell::tool::{reveal, secrets};
use crate::engine::cell::{Cell, Scope, bindings::Handle, host_span::host_span};
use crate::secrets::secret::Secret;

/// The value that a tool reads in place of a secret in a dry run.
const REVEALED: &str = "value-of-a-dry-run";

/// Links the interfaces.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    secrets::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)?;
    reveal::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)
}

fn denied(denial: &Denial) -> secrets::Fault {
    secrets::Fault::Denied(denial_text(denial))
}

/// Returns a denial as text for the tool, with a hint for the person who can change the grants.
pub(super) fn denial_text(denial: &Denial) -> String {
    format!("{denial}; {}", denial.hint())
}

impl secrets::Host for Cell {
    fn get(&mut self, name: String) -> wasmtime::Result<Result<Resource<Handle>, secrets::Fault>> {
        self.called("secrets", "get")?;
        let span = host_span(&self.scope.invocation, "secrets", "get");
        if let Err(denial) = self.scope.authorize(&Request::Secret { name: name.as_str().into() }) {
            span.record("error", "denied");
            return Ok(Err(denied(&denial)));
        }
        Ok(Ok(self.table.push(Handle { name })?))
    }
}

impl secrets::HostSecret for Cell {
    fn name(&mut self, handle: Resource<Handle>) -> wasmtime::Result<String> {
        self.called("secrets", "[method]secret.name")?;
        Ok(self.table.get(&handle)?.name.clone())
    }

    fn drop(&mut self, handle: Resource<Handle>) -> wasmtime::Result<()> {
        self.count_host_call()?;
        self.table.delete(handle)?;
        Ok(())
    }
}

impl reveal::Host for Cell {
    async fn value(&mut self, name: String) -> wasmtime::Result<Result<String, secrets::Fault>> {
        self.called("reveal", "value")?;
        self.run_state.waits();
        let span = host_span(&self.scope.invocation, "reveal", "value");
        if let Err(denial) = self.scope.authorize(&Request::Reveal { name: name.as_str().into() }) {
            span.record("error", "denied");
            return Ok(Err(denied(&denial)));
        }
        if self.scope.resources.recorder.is_some() {
            return Ok(Ok(REVEALED.to_owned()));
        }
        match self.scope.secret_value(&name).instrument(span.clone()).await {
            Some(secret) => Ok(Ok(secret.expose().to_owned())),
            None => {
                span.record("error", "unavailable");
                let problem = "the host cannot provide it at the moment";
                Ok(Err(secrets::Fault::Unavailable(problem.into())))
            }
        }
    }
}

impl Scope {
    /// Returns the value of a granted secret, after it is registered with the call redactor. The
    /// reason of a failure goes to the log only: it may name where the host keeps its secrets.
    pub(super) async fn secret_value(&self, name: &str) -> Option<Secret> {
        let tenant = self.invocation.context.tenant.as_deref();
        let secret = self.resources.secrets.secret(tenant, name).await;
        let secret = secret.inspect_err(
            |error| tracing::error!(name, %error, "a granted secret is not available"),
        );
        let secret = secret.ok()?;
        // A call that was granted a secret has a redactor.
        self.redactor.as_ref()?.learn(name, &secret).await.then_some(secret)
    }
}
