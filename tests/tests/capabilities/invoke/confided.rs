//! A tool passes the value of a secret to tools without a grant of it: the value leaves through
//! none of them.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcell::component::{Command, ComponentBytes, ComponentKind};
use toolcell::kv::SqliteStore;
use toolcell::outcome::HandlerError;
use toolcell::runtime::Placement;
use toolcell::secrets::{Secret, StoredSecrets};
use toolcell::tool::Invocation;
use toolcell::{
    CallOptions, Component, Definition, Engine, Event, Executor, Grants, Limits, Registry, Tool,
};
use toolcell_test_guests::{command_module, rows};
use toolcell_tests::server::{Server, response};
use toolcell_tests::{PLACEMENTS, tool, wait};

use super::rule;
use crate::secrets::{OWN, shows};
use crate::{complete, observed};

/// The tools `confide`, which reads the secret; `repeat`, which does not, with keys, requests and
/// calls; the native `echo`; and `program`, whose output exceeds its limit.
struct Host {
    executor: Executor,
    registry: Registry,
    server: Server,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Host {
    fn new(placement: Placement) -> Self {
        Self::with(placement, Grants::default())
    }

    /// The tool `repeat` has these grants as well.
    fn with(placement: Placement, mut says: Grants) -> Self {
        let server = Server::start(Ipv4Addr::LOCALHOST, |_| response("200 OK", ""));
        let secrets = StoredSecrets::default().with("token", Secret::new(OWN).expect("a secret"));
        let engine = Engine::builder().cells(4).placement(placement).keys(SqliteStore::in_memory());
        let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/confided");
        let engine = engine.secrets(secrets).cache(cache).build().expect("an engine");
        let load = |grants: Grants, name: &str| tool(&engine, "messenger", name, grants);
        let mut reads = Grants::default();
        reads.reveal.insert("token".into());
        reads.invoke.extend(["own repeat", "own echo", "own program"].map(rule));
        reads.store = Some("confide".into());
        says.kv.push("write *".parse().expect("a rule"));
        says.http.push(server.rule("GET,POST", "/"));
        says.invoke.extend(["own echo", "own c*"].map(rule));
        says.store = Some("repeat".into());
        let echo = async |arguments: Value, invocation: Arc<Invocation>| {
            invocation.progress(1, None, Some(arguments["text"].to_string()));
            Err::<Value, _>(HandlerError::new(arguments["text"].to_string()).with_data(arguments))
        };
        let definition = Definition::new("echo", "Fails with its arguments.").expect("a name");
        let echo = Tool::native(definition, echo);
        let mut program = Command::new("program");
        // The thirds in order, over two lines, and longer than the limit of a result.
        let argv = ["write", "{b}\n{a}{c}, and then some more words"];
        program.argv = Some(argv.map(str::to_owned).into());
        let bytes = ComponentBytes::new(command_module(), ComponentKind::Command(program));
        let own = engine.clone();
        let program = wait(async move { Component::load(&own, bytes).await }).expect("it loads");
        let short = Limits { result: 40, ..Limits::default() };
        let registry = Registry::new();
        let tools = [
            load(reads, "confide"),
            load(says.clone(), "repeat"),
            load(says, "stored"),
            echo.expect("a tool"),
            program.tools()[0].clone().with_limits(short),
        ];
        registry.register_all(tools).expect("names");
        let (executor, events) = observed(Some);
        let tools = registry.clone();
        let executor = executor.with_callable(move |name| tools.get(name));
        Self { executor, registry, server, events }
    }

    /// Returns all that a caller, observers and servers see of one call.
    fn shown(&self, name: &str, arguments: &Value) -> String {
        let tool = self.registry.get(name).expect("a tool");
        let result = complete(&self.executor, &tool, arguments, CallOptions::default()).result;
        let events = std::mem::take(&mut *self.events.lock().expect("events"));
        format!("{} {} {:?}", json!(result), json!(events), self.server.taken())
    }

    fn confided(&self, to: &str, arguments: &Value) -> String {
        self.shown("confide", &json!({"to": to, "with": arguments.to_string()}))
    }

    fn repeated(&self, words: &[&str], how: &str, at: &str) -> String {
        self.confided("repeat", &json!({"words": words, "how": how, "at": at}))
    }
}

#[test]
fn sub_call_arguments_contain_no_secret() {
    for placement in PLACEMENTS {
        let host = Host::new(placement);
        for word in ["$all", "<$all>", "$1 $2 $3"] {
            let shown = host.confided("echo", &json!({"text": word, (word): 1, "deep": [[word]]}));
            assert!(!shows(&shown, OWN), "{word}: {shown}");
            let told = "removed from the arguments of the call of `echo`";
            assert!(shown.contains(told), "{word}: {shown}");
        }
        // Text without the value arrives unchanged.
        let shown = host.confided("echo", &json!({"text": "a\nb", "number": 1.50}));
        assert!(shown.contains(r"a\\nb") && !shown.contains("removed"), "{shown}");
        for how in rows::<&str>("capabilities/invoke/confided", "ways") {
            let shown = host.repeated(&["$all"], how, &host.server.url("/"));
            assert!(!shows(&shown, OWN), "{how}: {shown}");
        }
    }
}

#[test]
fn lost_log_of_a_sub_call_is_in_callers_usage() {
    let host = Host::new(PLACEMENTS[0]);
    let confide = host.registry.get("confide").expect("a tool");
    let says = json!({"words": ["a"], "how": "log", "at": ""});
    let arguments = json!({"to": "repeat", "with": says.to_string()});
    let limits = Limits { log: 0, ..Limits::unlimited() };
    let options = CallOptions { limits, ..CallOptions::default() };
    let made = complete(&host.executor, &confide, &arguments, options);
    assert_eq!((made.usage.log_bytes, made.usage.log_bytes_dropped), (0, 8), "{made:?}");
}

/// The thirds of the value arrive, because parts of a value are not recognised, and `repeat` joins
/// them.
#[test]
fn called_tool_never_emits_callers_secret() {
    let thirds = ["$1", "and", "$2", "and", "$3"];
    for placement in PLACEMENTS {
        let host = Host::new(placement);
        for how in rows::<&str>("capabilities/invoke/confided", "ways") {
            let shown = host.repeated(&thirds, how, &host.server.url("/"));
            assert!(shown.contains(r#"canary-4\",\"and\""#), "the thirds arrive: {shown}");
            assert!(!shows(&shown, OWN), "{how}: {shown}");
            let is_hidden = ["value of a key", "swapped", "url", "header", "body"].contains(&how);
            let is_denied = is_hidden || how == "key";
            assert_eq!(shown.contains("tool_denied"), is_denied, "{how}: {shown}");
            assert_eq!(shown.contains("[redacted]"), !is_hidden, "{how}: {shown}");
        }
        // One call further down, in its arguments and in its name.
        for (how, at) in [("on", "echo"), ("name", "")] {
            let shown = host.repeated(&thirds, how, at);
            assert!(!shows(&shown, OWN) && shown.contains("[redacted]"), "{how}: {shown}");
        }
        // A later call of its own finds nothing stored.
        let stored = host.shown("stored", &json!({}));
        assert!(stored.contains(r#""value":[]"#), "{stored}");
    }
}

#[test]
fn called_program_never_prints_callers_secret() {
    let host = Host::new(PLACEMENTS[0]);
    let shown = host.confided("program", &json!({"a": "$2", "b": "$1", "c": "$3"}));
    assert!(!shown.contains("removed from the arguments"), "the thirds arrive: {shown}");
    assert!(!shows(&shown, OWN) && shown.contains("[redacted]"), "{shown}");
}

#[test]
fn called_tool_may_store_a_secret_that_it_may_read() {
    let mut says = Grants::default();
    says.reveal.insert("token".into());
    let host = Host::with(PLACEMENTS[0], says);
    let shown = host.repeated(&["$1", "and", "$2", "and", "$3"], "value of a key", "");
    assert!(!shows(&shown, OWN) && !shown.contains("tool_denied"), "{shown}");
    let stored = host.shown("stored", &json!({}));
    assert!(stored.contains(r#""value":["kept"]"#), "{stored}");
}
