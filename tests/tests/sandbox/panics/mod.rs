//! The host panics: in every function that a tool can call, and in every part that an embedder
//! provides. The call has its typed ending, other calls are not affected, and a component that
//! causes panics again and again is not run any more.

mod functions;
mod parts;
mod quarantine;
mod watch;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZero;
use std::panic;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use serde_json::json;
use toolcell::grants::{DirectoryQuota, HttpRule, Injection, SecretGrant};
use toolcell::http::Egress;
use toolcell::kv::KeyStore;
use toolcell::runtime::Placement;
use toolcell::secrets::SecretSource;
use toolcell::tool::Statistics;
use toolcell::{
    CallResult, Component, Engine, Event, Executor, Grants, Registry, RunOptions, Runner, Tool,
    ToolCall,
};
use toolcell_test_guests::bytes;
use toolcell_tests::{ending, load_with, wait};

/// The message of every intended panic.
const ON_PURPOSE: &str = "as told";
/// The server's host name.
const HOST: &str = "visited.example";

/// Keeps the messages of intended panics out of the output.
fn silence_intended_panics() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if info.payload_as_str() != Some(ON_PURPOSE) {
                usual(info);
            }
        }));
    });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a server that answers every request.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(|| answer(stream));
        }
    });
    address
}

/// Answers a request, which ends with its head or with the only body that a visitor sends.
fn answer(mut stream: TcpStream) {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    let is_whole = |request: &[u8]| {
        request.ends_with(b"a visit")
            || request.starts_with(b"GET") && request.ends_with(b"\r\n\r\n")
    };
    while !is_whole(&request) {
        match stream.read(&mut piece) {
            Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
            _ => return,
        }
    }
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nwelcome");
}

/// The host that the tool calls, with small pools: a resource that one call does not give back is
/// missing in the next.
struct Host {
    engine: Engine,
    url: String,
    grants: Grants,
}

impl Host {
    fn new(
        placement: Placement,
        quarantine: Option<NonZero<u32>>,
        secrets: impl SecretSource,
        keys: impl KeyStore,
        egress: Egress,
    ) -> Self {
        let url = format!("http://{HOST}:{}/", server().port());
        let builder = Engine::builder().cells(1).placement(placement).open_files(6);
        let builder = builder
            .quarantine_after(quarantine)
            .secrets(secrets)
            .keys(keys)
            .egress(egress.with_connections(1));
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("panics");
        let engine = builder.cache(cache).build().expect("an engine");
        let rule: HttpRule = format!("GET,POST {url}").parse().expect("a rule");
        let rule = rule.with_private(["127.0.0.0/8".parse().expect("a network")]);
        let mut grants = Grants::default();
        grants.http.push(rule.clone());
        grants.kv.push("write *".parse().expect("a rule"));
        grants.secrets.insert("token".into(), SecretGrant::new(rule, Injection::Bearer));
        grants.reveal.insert("token".into());
        grants.scratch = Some(DirectoryQuota { bytes: 16 << 10, files: 20 });
        Self { engine, url, grants }
    }

    fn load(&self, name: &str) -> Component {
        load_with(&self.engine, bytes(name), self.grants.clone()).expect("it loads")
    }
}

/// A tool of a component, called by name through a runner.
struct Guest {
    runner: Runner,
    name: String,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Guest {
    fn of(component: &Component) -> Self {
        Self::new(component.tools()[0].clone())
    }

    fn new(tool: Tool) -> Self {
        let (registry, name) = (Registry::new(), tool.definition().name.clone());
        registry.register(tool).expect("the only one");
        let events = Arc::<Mutex<Vec<Event>>>::default();
        let heard = Arc::clone(&events);
        let executor = Executor::new().with_events(move |event: Event| lock(&heard).push(event));
        Self { runner: Runner::new(registry).with_executor(executor), name, events }
    }

    /// Makes a call, and returns its ending.
    fn call(&self, arguments: &str) -> String {
        lock(&self.events).clear();
        let (runner, call) =
            (self.runner.clone(), ToolCall::new("1", self.name.as_str(), arguments));
        wait(async move { runner.run([call], RunOptions::default()).await }).expect("it is made");
        ending(&self.result())
    }

    /// Returns the results of the calls that were made last.
    fn results(&self) -> Vec<CallResult> {
        let ends = |event: &Event| {
            if let Event::Completed { result, .. } = event { Some(result.clone()) } else { None }
        };
        lock(&self.events).iter().filter_map(ends).collect()
    }

    fn result(&self) -> CallResult {
        self.results().pop().expect("every call has an end")
    }

    fn statistics(&self) -> Statistics {
        self.runner.registry().statistics(&self.name).expect("it is there")
    }
}

/// The tool `visit` at a host.
struct Visitor {
    guest: Guest,
    url: String,
}

impl Visitor {
    fn at(host: &Host) -> Self {
        Self { guest: Guest::of(&host.load("visitor")), url: host.url.clone() }
    }

    /// Returns the ending of a visit that calls every function but those that do not return.
    fn stays(&self) -> String {
        self.guest.call(&json!({"url": self.url}).to_string())
    }

    /// Returns the endings of this many concurrent visits.
    fn stays_at_once(&self, calls: usize) -> Vec<String> {
        let (runner, arguments) = (self.guest.runner.clone(), json!({"url": self.url}).to_string());
        lock(&self.guest.events).clear();
        let calls: Vec<_> = (0..calls)
            .map(|id| ToolCall::new(id.to_string(), "visit", arguments.as_str()))
            .collect();
        let options = RunOptions { max_concurrency: Some(calls.len()), ..RunOptions::default() };
        wait(async move { runner.run(calls, options).await }).expect("they are made");
        self.guest.results().iter().map(ending).collect()
    }

    /// Returns the ending of a visit that calls this function, which does not return.
    fn leaves_by(&self, door: &str) -> String {
        self.guest.call(&json!({"url": self.url, "door": door}).to_string())
    }
}
