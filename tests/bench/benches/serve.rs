//! Measures a server: a call over HTTP and over MCP against a bare route that echoes; many streams;
//! a reload under load; a tenant beside another one over its quota; many configured tools.
//!
//! `cargo bench --workspace --profile dev --bench serve`, and after `--` the parts to measure:
//! `calls`, `quota`, `streams` or `tools` (default: all). `tools` starts `toolcell`: build that
//! first, with the same profile.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::routing::post as route;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use toolcell::tenant::Quota;
use toolcell::{Component, Definition, Engine, Registry, Tenant, Tool};
use toolcell_benches::client::{Connection, load, post};
use toolcell_benches::many;
use toolcell_benches::spent::spent;
use toolcell_benches::timing::{micros, percentile};
use toolcell_server::auth::ApiKeyStore;
use toolcell_server::mcp::{self, McpOptions};
use toolcell_server::{
    Authenticator, HttpOptions, HttpServer, ListenOptions, ServedTools, Service, ServiceLimits,
};
use toolcell_test_guests::{Answer, Hostile};

const ROUNDS: usize = 9;
const CONNECTIONS: usize = 8;
/// Requests of a connection in a round.
const EACH: usize = 400;
const STREAMS: usize = 2000;
/// Prefixes of the names of the threads that answer requests, and of those that run guests.
const THREADS: [&str; 2] = ["server", "toolcell-"];

/// A running server.
struct Server {
    address: SocketAddr,
    service: Service,
}

fn main() -> Result<()> {
    let threads = |name: &str| {
        Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build()
    };
    let (servers, clients) = (threads("server")?, threads("client")?);
    let engine = Engine::builder().build()?;
    let component =
        servers.block_on(Component::load(&engine, Hostile::answering(Answer::Echo).component()))?;
    servers.block_on(component.optimised());
    let registry = Registry::new();
    registry.register_all(component.tools().to_vec())?;
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let measures = |part: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == part);
    if measures("calls") {
        calls(&servers, &clients, &registry)?;
    }
    if measures("quota") {
        quota(&servers, &clients, &registry)?;
    }
    if measures("streams") {
        streams(&servers, &clients)?;
    }
    if measures("tools") {
        many::configured(&servers, 100)?;
        many::configured(&servers, 1000)?;
    }
    Ok(())
}

fn call(headers: &str) -> Vec<u8> {
    let body = json!({"name": "hostile", "arguments": {"text": "hello"}});
    post("/v1/calls", headers, &body.to_string())
}

fn mcp_call() -> Vec<u8> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "hostile", "arguments": {"text": "hello"}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers =
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: hostile\r\n";
    post("/mcp", headers, &body.to_string())
}

/// Starts a server of these tools on `runtime`, for at most `most` connections and calls.
fn serve(
    runtime: &Runtime,
    served: ServedTools,
    auth: Authenticator,
    most: usize,
) -> Result<Server> {
    let limits = ServiceLimits { in_flight: most, ..ServiceLimits::default() };
    let service = Service::builder(served).limits(limits).build()?;
    let options = ListenOptions {
        connections: most,
        http: HttpOptions { requests: most, ..HttpOptions::default() },
        ..ListenOptions::default()
    };
    let options =
        ListenOptions { protected: mcp::routes(service.clone(), McpOptions::default()), ..options };
    let server = runtime.block_on(HttpServer::bind(service.clone(), auth, options))?;
    let address = server.address();
    drop(runtime.spawn(server.serve(std::future::pending())));
    Ok(Server { address, service })
}

/// Starts a route that parses JSON and writes it back.
fn echo(runtime: &Runtime) -> Result<SocketAddr> {
    let listener = runtime.block_on(tokio::net::TcpListener::bind(("127.0.0.1", 0)))?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/v1/calls", route(async |body: axum::Json<Value>| body));
    drop(runtime.spawn(async move { axum::serve(listener, router).await }));
    Ok(address)
}

fn calls(servers: &Runtime, clients: &Runtime, registry: &Registry) -> Result<()> {
    let server = serve(servers, ServedTools::new(registry), Authenticator::open(), 256)?;
    let contenders = [
        ("axum route that echoes", echo(servers)?, call("")),
        ("HTTP call", server.address, call("")),
        ("MCP call", server.address, mcp_call()),
    ];
    for (name, address, request) in &contenders {
        let answered = clients.block_on(async {
            let mut connection = Connection::open(*address).await?;
            let response = connection.send(request).await?;
            anyhow::Ok((response.status, String::from_utf8_lossy(response.body).into_owned()))
        })?;
        ensure!(answered.0 == 200 && answered.1.contains("hello"), "{name}: {answered:?}");
    }
    // Requests a second at full load; the contenders alternate in each round.
    let mut rates = [const { Vec::new() }; 3];
    let mut processor = [[Duration::ZERO; 2]; 3];
    let mut loaded = |every: Option<Duration>,
                      kept: &mut dyn FnMut(usize, Duration, Vec<Duration>)|
     -> Result<()> {
        for round in 0..=ROUNDS {
            for (index, (_, address, request)) in contenders.iter().enumerate() {
                let (before, began) = (THREADS.map(spent), Instant::now());
                let times = clients.block_on(load(*address, request, CONNECTIONS, EACH, every))?;
                if round > 0 {
                    if every.is_none() {
                        let after = THREADS.map(spent).into_iter().zip(before);
                        let more = after.map(|(after, before)| after.saturating_sub(before));
                        processor[index].iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                    }
                    kept(index, began.elapsed(), times);
                }
            }
        }
        Ok(())
    };
    loaded(None, &mut |index, took, times| {
        rates[index].push(times.len() as f64 / took.as_secs_f64())
    })?;
    let [bare, http, mcp] = rates.each_mut().map(|rates| percentile(rates, 50.0));
    let half = Duration::from_secs_f64(CONNECTIONS as f64 / (http / 2.0));
    let mut tails = [const { Vec::new() }; 3];
    loaded(Some(half), &mut |index, _, times| {
        tails[index].push(percentile(&mut micros(times), 99.0))
    })?;
    // One connection, for the latency of a call alone.
    let mut alone = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (index, (_, address, request)) in contenders.iter().enumerate() {
            let times = clients.block_on(load(*address, request, 1, EACH, None))?;
            alone[index].push(percentile(&mut micros(times), 50.0));
        }
    }
    let alone = alone.each_mut().map(|times| percentile(times, 50.0));
    let tails = tails.each_mut().map(|times| percentile(times, 50.0));
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "\n{CONNECTIONS} connections; p99 at half of the HTTP call's load; one call alone: microseconds"
    )?;
    for (index, (name, _, _)) in contenders.iter().enumerate() {
        let rate = [bare, http, mcp][index];
        let [server, guest] = processor[index]
            .map(|sum| sum.as_secs_f64() * 1e6 / (ROUNDS * CONNECTIONS * EACH) as f64);
        let (tail, alone) = (tails[index], alone[index]);
        write!(out, "  {name:24} {rate:8.0} a second  p99 {tail:8.0}  alone {alone:8.1}")?;
        writeln!(out, "  processor: server {server:5.1}, guests {guest:5.1}")?;
    }
    let (throughput, tail, time) = (http / bare, tails[1] / tails[0], alone[2] / alone[1]);
    writeln!(out, "  HTTP call: {throughput:.2} of the route's throughput (target 0.5)")?;
    writeln!(out, "  HTTP call: p99 at half load {tail:.1} x the route's (target 3)")?;
    writeln!(out, "  MCP call: {time:.2} x the time of an HTTP call alone (target 1.5)")?;
    drop(out);
    reload(clients, &server, registry)
}

/// Makes calls while the served tools are replaced again and again: none may fail.
fn reload(clients: &Runtime, server: &Server, registry: &Registry) -> Result<()> {
    let replaced = clients.block_on(async {
        let calls = tokio::spawn({
            let (address, request) = (server.address, call(""));
            async move { load(address, &request, CONNECTIONS, 4 * EACH, None).await }
        });
        let mut replaced = 0;
        while !calls.is_finished() {
            server.service.replace(ServedTools::new(registry));
            replaced += 1;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        calls.await??;
        anyhow::Ok(replaced)
    })?;
    let calls = CONNECTIONS * 4 * EACH;
    writeln!(
        std::io::stdout(),
        "\n{calls} calls during {replaced} replacements of what is served: none failed"
    )?;
    Ok(())
}

/// Measures a tenant's calls, alone and beside a tenant that sends ten times its quota.
fn quota(servers: &Runtime, clients: &Runtime, registry: &Registry) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let keys = ApiKeyStore::open(dir.path().join("keys.json"))?;
    let [good, greedy] = [keys.add("good")?, keys.add("greedy")?];
    let often = Duration::from_millis(1);
    let quota = Quota { calls_per_minute: Some(6000), ..Quota::default() };
    let served = ServedTools::new(registry)
        .with_tenant("good", Tenant::default())
        .with_tenant("greedy", Tenant { quota, ..Tenant::default() });
    let server = serve(servers, served, Authenticator::api_keys(keys), 256)?;
    let of = |key: &str| call(&format!("Authorization: Bearer {key}\r\n"));
    let (good, greedy) = (of(good.key.expose()), of(greedy.key.expose()));
    let mut tails = [const { Vec::new() }; 2];
    let mut refused = 0;
    for _ in 0..ROUNDS {
        for (index, is_beside) in [false, true].into_iter().enumerate() {
            let (times, more) = clients.block_on(async {
                let address = server.address;
                // 1,000 requests a second: ten times the quota.
                let flood = is_beside.then(|| tokio::spawn(flood(address, greedy.clone(), often)));
                let times = load(address, &good, 4, EACH, Some(Duration::from_millis(4))).await?;
                flood.iter().for_each(tokio::task::JoinHandle::abort);
                anyhow::Ok((times, usize::from(flood.is_some())))
            })?;
            refused += more;
            tails[index].push(percentile(&mut micros(times), 99.0));
        }
    }
    ensure!(refused == ROUNDS, "the flood did not run");
    let [alone, beside] = tails.each_mut().map(|times| percentile(times, 50.0));
    writeln!(
        std::io::stdout(),
        "\na tenant's p99 {alone:.0} us; beside a tenant at ten times its quota {beside:.0} us: {:.1} x (target 2)",
        beside / alone
    )?;
    Ok(())
}

/// Sends a request at this interval, without regard to the answer.
async fn flood(address: SocketAddr, request: Vec<u8>, every: Duration) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    let mut pace = tokio::time::interval(every);
    loop {
        pace.tick().await;
        connection.send(&request).await?;
    }
}

/// Opens event streams of calls that never end, and measures their memory.
fn streams(servers: &Runtime, clients: &Runtime) -> Result<()> {
    let files = rustix::process::Resource::Nofile;
    let limit = rustix::process::getrlimit(files);
    rustix::process::setrlimit(files, rustix::process::Rlimit { current: limit.maximum, ..limit })?;
    let registry = Registry::new();
    let definition = Definition::new("wait", "Waits.")?;
    registry.register(Tool::native(definition, async |_: Value| {
        std::future::pending::<Value>().await
    })?)?;
    let server = serve(servers, ServedTools::new(&registry), Authenticator::open(), STREAMS + 10)?;
    let before = many::resident()?;
    let began = Instant::now();
    let open = clients.block_on(async {
        let body = json!({"calls": [{"id": "1", "name": "wait", "arguments": {}}]});
        let request = post("/v1/runs", "", &body.to_string());
        let mut open = Vec::with_capacity(STREAMS);
        for number in 0..STREAMS {
            let mut connection = Connection::open(server.address).await?;
            connection.begin(&request).await.with_context(|| format!("stream {number}"))?;
            open.push(connection);
        }
        anyhow::Ok(open)
    })?;
    let (took, more) = (began.elapsed(), many::resident()? - before);
    ensure!(server.service.running() == STREAMS, "{} run", server.service.running());
    let each = more as f64 / STREAMS as f64 / 1024.0;
    writeln!(
        std::io::stdout(),
        "\n{} event streams opened in {took:.1?}; {each:.0} KiB each, both ends",
        open.len()
    )?;
    Ok(())
}
