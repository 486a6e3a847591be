//! A secret that a tool was given, or that a server sends back, in every disguise through every
//! exit.

mod disguise;

use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::json;
use toolcell::grants::{HttpRule, Injection, SecretGrant};
use toolcell::kv::SqliteStore;
use toolcell::runtime::Placement;
use toolcell::secrets::{Secret, StoredSecrets};
use toolcell::{CallOptions, Component, Event, Executor, Grants, ToolCall};
use toolcell_test_guests::bytes;
use toolcell_tests::server::{Server, response};
use toolcell_tests::wait;

use crate::rng::SeededRng;
use disguise::{DISGUISES, Finder, disguised};

use super::Scenario;
use crate::fixture::{Fixture, load_for_good};
use crate::tally::{Fault, Tally};

/// The ways out of a cell.
static EXITS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let exits = "reflected result member error question halt panic log stdout stderr progress keys \
                 url query header body";
    exits.split(' ').collect()
});

/// Collects what the library's spans and events write.
#[derive(Clone, Default)]
struct Traces(Arc<Mutex<Vec<u8>>>);

impl Traces {
    fn take(&self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut *self.0.lock().expect("no panic")))
            .into_owned()
    }
}

impl std::io::Write for Traces {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) struct Secrets {
    finder: Finder,
    leaker: Component,
    executor: Executor,
    events: Arc<Mutex<String>>,
    traces: Traces,
    bound: Server,
    other: Server,
}

impl Secrets {
    pub(crate) fn new(stage: &Fixture) -> Self {
        let canary =
            format!("cnry-{}+/=", SeededRng::of(stage.seed, "secrets", u64::MAX).letters(30));
        // Sends the value back in the disguise that the path names: as body, and as header.
        let known = canary.clone();
        let echo = move |request: &str| {
            let disguise =
                request.split(' ').nth(1).map_or("", |path| path.trim_start_matches("/api/"));
            let text = disguised(&known, disguise);
            response(&format!("200 OK\r\nx-echo: {text}"), &text)
        };
        let bound = Server::start(Ipv4Addr::LOCALHOST, echo);
        let other = Server::start(Ipv4Addr::LOCALHOST, |_| response("200 OK", "thanks"));
        let mut grants = Grants::default();
        grants.http.extend([&bound, &other].map(|server| server.rule("GET,POST", "/")));
        let api: HttpRule = bound.url("/api").parse().expect("a rule");
        let api = api.with_private(["127.0.0.0/8".parse().expect("a network")]);
        let secret = SecretGrant::new(api, Injection::Bearer);
        grants.secrets.insert("token".into(), secret);
        grants.reveal.insert("token".into());
        grants.kv.push("write *".parse().expect("a rule"));
        let secrets =
            StoredSecrets::default().with("token", Secret::new(canary.as_str()).expect("a secret"));
        let engine = stage.engine(Placement::Cells).secrets(secrets).keys(SqliteStore::in_memory());
        let engine = engine.build().expect("an engine");
        let (events, traces) = (Arc::new(Mutex::new(String::new())), Traces::default());
        let seen = Arc::clone(&events);
        let executor = Executor::new().with_events(move |event: Event| {
            let line =
                format!("{event:?} {}\n", serde_json::to_string(&event).expect("an event is JSON"));
            seen.lock().expect("no panic").push_str(&line);
        });
        // A process runs one scenario: no other code has set a subscriber.
        let writes = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE);
        let writer = traces.clone();
        let _ = writes.with_writer(move || writer.clone()).with_ansi(false).try_init();
        let leaker = load_for_good(&engine, bytes("leaker"), grants);
        Self { finder: Finder::of(&canary), leaker, executor, events, traces, bound, other }
    }
}

impl Scenario for Secrets {
    fn cases(&self) -> Option<u64> {
        Some((EXITS.len() * DISGUISES.len()) as u64)
    }

    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let (exit, disguise) =
            (EXITS[case as usize / DISGUISES.len()], DISGUISES[case as usize % DISGUISES.len()]);
        let to = if exit == "reflected" { self.bound.url("/api/") } else { self.other.url("/") };
        let tool = self.leaker.tools()[0].clone();
        let arguments = json!({"disguise": disguise, "exit": exit, "to": to});
        let call = ToolCall::with_value("1", "leaker", &arguments);
        let executor = self.executor.clone();
        let completion =
            wait(async move { executor.call(&tool, call, CallOptions::default()).await });
        let places = [
            ("the result", serde_json::to_string(&completion).expect("a completion is JSON")),
            ("`Debug` of the result", format!("{completion:?}")),
            ("`Debug` of the tool", format!("{:?} {:?}", self.leaker, self.leaker.tools())),
            ("events", std::mem::take(&mut *self.events.lock().expect("no panic"))),
            ("tracing", self.traces.take()),
            ("another server", self.other.taken().concat()),
        ];
        // The server that the secret is bound to may receive it.
        drop(self.bound.taken());
        let shows = places.iter().filter(|(_, text)| self.finder.find(text).is_some());
        let found: Vec<_> = shows.map(|(place, _)| *place).collect();
        tally.record_result(if found.is_empty() {
            Ok(())
        } else {
            let detail = format!("found in {}: {completion:?}", found.join(", "));
            Err((Fault::Canary, format!("`{disguise}` by `{exit}`"), detail))
        });
    }
}
