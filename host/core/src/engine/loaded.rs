//! A component that answers calls: each in a cell of its own, on the code that it has by then.

use std::sync::Arc;
use std::time::Duration;

use super::load::{Examination, Loaded};
use super::tier::Code;
use super::{Engine, invoke, placement};
use crate::call::CallResult;
use crate::definition::{Checks, Definition};
use crate::handler::Invocation;
use crate::refusal::Fault;
use crate::rights::Rights;
use crate::tool_error::ToolError;

/// A component that answers calls.
#[derive(Clone)]
pub(crate) struct LoadedComponent {
    loaded: Arc<Loaded>,
    engine: Engine,
}

impl LoadedComponent {
    pub(super) fn new(loaded: Loaded, engine: Engine) -> Self {
        Self { loaded: Arc::new(loaded), engine }
    }

    pub(crate) fn examination(&self) -> &Examination {
        &self.loaded.examination
    }

    pub(crate) fn definitions(&self) -> &[Definition] {
        &self.loaded.definitions
    }

    pub(crate) fn is_cached(&self) -> bool {
        self.loaded.compile_time.is_none()
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        self.loaded.quarantine.is_closed()
    }

    pub(crate) fn let_in_again(&self) {
        self.loaded.quarantine.lift();
    }

    pub(crate) fn is_pooled(&self) -> bool {
        self.loaded.pooled
    }

    pub(crate) fn compile_time(&self) -> Option<Duration> {
        self.loaded.compile_time
    }

    /// What a call that begins now runs on.
    pub(crate) fn code(&self) -> Code {
        self.loaded.current.code()
    }

    /// Waits until that does not change any more.
    ///
    /// # Cancel safety
    /// May be dropped.
    pub(crate) async fn optimised(&self) -> Code {
        self.loaded.current.last().await
    }

    /// Answers one call in a fresh cell.
    pub(crate) async fn call(&self, invocation: Arc<Invocation>, checks: Checks, rights: Arc<Rights>) -> CallResult {
        let Loaded { current, quarantine, .. } = &*self.loaded;
        placement::execute(&self.engine.0, current.ready(), quarantine, invocation, checks, rights).await
    }

    /// Asks whether the tool is offered, in a cell of its own.
    pub(crate) async fn visible(&self, invocation: Arc<Invocation>) -> Result<bool, ToolError> {
        let Loaded { current, quarantine, .. } = &*self.loaded;
        let question = |pulse| invoke::visible(current.ready(), Arc::clone(&invocation), pulse);
        placement::ask(&self.engine.0, quarantine, &invocation, question).await
    }

    /// Asks what is wrong with the invocation's arguments, in a cell of its own.
    pub(crate) async fn validate(&self, invocation: Arc<Invocation>) -> Result<Vec<Fault>, ToolError> {
        let Loaded { current, quarantine, .. } = &*self.loaded;
        let question = |pulse| invoke::validate(current.ready(), Arc::clone(&invocation), pulse);
        placement::ask(&self.engine.0, quarantine, &invocation, question).await
    }
}
