//! A folder with a configuration, its approvals, and the served result.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use toolcell::{CallContext, CallOptions, CallResult, ToolCall};
use toolcell_config::{
    Configuration, Engines, LoadedTools, Lock, ReadOptions, Reason, Reloader, Serving,
};
use toolcell_test_guests::{Answer, Hostile};

/// Two components without grants.
pub(crate) const TWO: &str =
    "[components.one]\npath = \"one.wasm\"\n[components.two]\npath = \"two.wasm\"\n";

/// Returns a component with one tool.
pub(crate) fn tool(name: &'static str, description: &'static str) -> Vec<u8> {
    Hostile { name, description, ..Hostile::answering(Answer::Echo) }.component()
}

/// Returns the same code with one more custom section, named `x`.
pub(crate) fn rebuilt(component: &[u8]) -> Vec<u8> {
    [component, &[0, 2, 1, b'x']].concat()
}

/// A folder with a configuration, and a state directory beside it.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new(configuration: &str) -> Self {
        let place = Self(tempfile::tempdir().expect("no error"));
        fs::create_dir(place.path().join("project")).expect("no error");
        place.write("toolcell.toml", configuration);
        place.write("one.wasm", tool("one", "The first."));
        place.write("two.wasm", tool("two", "The second."));
        place
    }

    /// Returns a place whose two components are approved.
    pub(crate) async fn approved(configuration: &str) -> Self {
        let place = Self::new(configuration);
        place.approve(&["one", "two"]).await;
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path().join("project").join(name), content).expect("no error");
    }

    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join("project").join(name)).expect("no error")
    }

    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions::new().with_state_dir(self.path().join("state"))
    }

    pub(crate) fn read(&self) -> Configuration {
        Configuration::read_with(self.path().join("project/toolcell.toml"), self.options())
            .expect("no error")
    }

    pub(crate) fn engines(&self) -> Engines {
        self.read().engines().with(|builder| builder.cells(4)).build().expect("no error")
    }

    /// Approves these components as they are now.
    pub(crate) async fn approve(&self, names: &[&str]) {
        let (configuration, engines) = (self.read(), self.engines());
        let mut seen = Vec::new();
        for name in names {
            let reviewed = configuration.review(&engines, name).await.expect("no error");
            seen.push(((*name).to_owned(), reviewed));
        }
        let lock = Lock::beside(&configuration).expect("no error");
        configuration.approve(&lock, &seen, &[]).expect("no error");
    }

    pub(crate) async fn load(&self) -> LoadedTools {
        self.read().load(&self.engines()).await.expect("no error")
    }

    pub(crate) async fn reloader(&self) -> Reloader {
        Reloader::start(self.read(), self.engines()).await.expect("no error")
    }
}

pub(crate) fn names(loaded: &LoadedTools) -> Vec<String> {
    loaded.registry().list().into_iter().map(|tool| tool.name).collect()
}

pub(crate) fn description(loaded: &LoadedTools, tool: &str) -> String {
    loaded.registry().get(tool).expect("no error").definition().description.clone()
}

pub(crate) fn problems(loaded: &LoadedTools) -> Vec<(&str, Reason, Serving)> {
    loaded
        .problems()
        .iter()
        .map(|problem| (problem.component.as_str(), problem.reason, problem.serving))
        .collect()
}

pub(crate) async fn called(loaded: &LoadedTools, tool: &str, tenant: Option<&str>) -> CallResult {
    let mut context = CallContext::default();
    context.tenant = tenant.map(str::to_owned);
    let options = CallOptions { context: context.into(), ..CallOptions::default() };
    loaded
        .registry()
        .call(loaded.executor(), ToolCall::new("1", tool, "{}"), options)
        .await
        .expect("no error")
        .result
}

/// Returns the kind of a call's refusal. `None`: the call has an outcome.
pub(crate) async fn refused(
    loaded: &LoadedTools,
    tool: &str,
    tenant: Option<&str>,
) -> Option<&'static str> {
    let result = called(loaded, tool, tenant).await;
    if let CallResult::Refusal(refusal) = &result {
        return Some(refusal.kind());
    }
    assert!(matches!(result, CallResult::Outcome(_)), "{result:?}");
    None
}
