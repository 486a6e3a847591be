//! 64 concurrent calls that end in every way, in random order: each must end as expected and in
//! time, and leave nothing behind.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use toolcell::grants::{DirectoryQuota, HttpRule};
use toolcell::http::{Egress, ResolveFuture, Resolver};
use toolcell::kv::SqliteStore;
use toolcell::runtime::Placement;
use toolcell::{
    AbortSignal, CallOptions, Completion, Definition, Engine, Event, Executor, Grants, Json,
    Limits, Outcome, Question, Tool, ToolCall,
};
use toolcell_test_guests::{Answer, Hostile, Misdeed, Place, bare_hello, bytes};
use toolcell_tests::server::{Server, response, silent};
use toolcell_tests::{ending, wait};

use crate::rng::SeededRng;

use super::Scenario;
use super::child::DELIBERATE_PANIC;
use crate::fixture::{CELLS, Fixture, MEMORY, load_for_good};
use crate::tally::{Fault, Tally, wrong};

/// Callers that run at the same time.
const CALLERS: u64 = 64;
/// Calls of each caller, one after the other.
const CALLS_PER_CALLER: u64 = 8;
/// Calls of one case.
pub(crate) const CALLS: u64 = CALLERS * CALLS_PER_CALLER;
/// Time until each of as many calls as there are cells must have a cell.
const CELL_TIMEOUT: Duration = Duration::from_secs(20);

/// Connections at once: fewer than callers, so that a connection that is never given back shows.
const CONNECTIONS: usize = 16;

/// Endings of a call whose deadline passed: while it runs, while it waits, because its own request
/// failed just before, or before it had a cell.
const ENDS_LATE: [&str; 3] = ["timeout/", "error", "refusal/overloaded"];

/// A resolver that panics at every name.
struct Panics;

impl Resolver for Panics {
    fn resolve(&self, _host: &str, _port: u16) -> ResolveFuture {
        panic!("{DELIBERATE_PANIC}")
    }
}

/// A kind of call: the tool, its arguments, the ending that is expected, and what ends it.
struct Kind {
    tool: Tool,
    arguments: String,
    ends: &'static str,
    end_mode: EndMode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EndMode {
    /// Runs to its own end.
    Normal,
    /// Runs into a short deadline.
    Deadline,
    /// Its future is dropped while it runs.
    Dropped,
    /// Its abort signal is raised while it runs.
    Aborted,
}

pub(crate) struct Mixed {
    seed: u64,
    kinds: Arc<Vec<Kind>>,
    waits: Tool,
    server: Server,
}

/// The ending of one call.
struct CallEnd {
    expected: &'static str,
    got: String,
    /// Time after the deadline, for calls that are to end at theirs.
    late: Option<Duration>,
}

impl Mixed {
    pub(crate) fn new(stage: &Fixture) -> Self {
        let egress = Egress::new().with_connections(CONNECTIONS).with_resolver(Panics);
        let builder = stage.engine(Placement::Cells).keys(SqliteStore::in_memory()).egress(egress);
        let engine = builder.quarantine_after(None).build().expect("an engine");
        // One cell, so that each guest that looks for marks gets the memory of the guest before it.
        let single = stage.engine(Placement::Cells).cells(1).build().expect("an engine");
        let loaded = |engine: &Engine, bytes, grants| {
            load_for_good(engine, bytes, grants).tools()[0].clone()
        };
        let granted = |bytes, grants| loaded(&engine, bytes, grants);
        let tool = |bytes: Vec<u8>| granted(bytes, Grants::default());
        let hostile = |misdeed| tool(Hostile::new(Place::Execute, misdeed).component());
        let marks = |pages| {
            let guest = Hostile { pages, ..Hostile::new(Place::Execute, Misdeed::LeaveMarks) };
            loaded(&single, guest.component(), Grants::default())
        };
        let native = |name| Definition::new(name, "").expect("a name");
        let kind = |tool: &Tool, arguments: &str, ends, end_mode| Kind {
            tool: tool.clone(),
            arguments: arguments.to_owned(),
            ends,
            end_mode,
        };
        let ends =
            |tool: &Tool, arguments: &str, ends| kind(tool, arguments, ends, EndMode::Normal);
        let hello = tool(bare_hello());
        let server = Server::start(Ipv4Addr::LOCALHOST, |_| response("200 OK", "hello"));
        let (answered, hung) = (server.url("/"), format!("http://{}/", silent()));
        let panicking = "http://panics.example/".to_owned();
        let (fetch, clerk, notes) = (
            granted(bytes("fetch"), grants_for([&answered, &hung, &panicking])),
            granted(bytes("clerk"), with_scratch()),
            granted(bytes("notes"), with_keys()),
        );
        let [answered, hung, panicking] =
            [answered, hung, panicking].map(|url| json!({"url": url}).to_string());
        let writes = r#"{"steps":[["write","/scratch/a","5000"],["size","/scratch/a"]]}"#;
        let stays =
            r#"{"steps":[["write","/scratch/a","5000"],["hold","/scratch/b","100"],["spin"]]}"#;
        let (spins, sleeps, waits) =
            (hostile(Misdeed::Spin), hostile(Misdeed::Sleep), hostile(Misdeed::AwaitAbort));
        let asks = async |_: Value| Outcome::AskUser(Question::new("which?"));
        let panics = async |_: Value| -> Value { panic!("{DELIBERATE_PANIC}") };
        let hangs = async |_: Value| std::future::pending::<Value>().await;
        let asks = Tool::native(native("asks"), asks).expect("a tool");
        let panics = Tool::native(native("panics"), panics).expect("a tool");
        let dropped = Tool::native(native("dropped"), hangs).expect("a tool");
        let hangs = Tool::native(native("hangs"), hangs).expect("a tool");
        let absent = Tool::manual(native("absent")).expect("a tool");
        let shapeless = tool(Hostile::answering(Answer::NoShape).component());
        let (ungranted, large) = (tool(bytes("fetch")), many_objects(Json::MAX_NODES));
        let kinds = vec![
            ends(&hello, r#"{"name":"Ada"}"#, "ok"),
            ends(&fetch, &answered, "ok"),
            kind(&fetch, &hung, "timeout/blocked", EndMode::Deadline),
            kind(&fetch, &hung, "dropped", EndMode::Dropped),
            ends(&fetch, &panicking, "handler_raised/host_panic"),
            ends(&clerk, writes, "ok"),
            kind(&clerk, stays, "timeout/deadline", EndMode::Deadline),
            kind(&clerk, stays, "dropped", EndMode::Dropped),
            ends(&notes, r#"{"action":"list"}"#, "ok"),
            ends(&hello, r#"{"name":7}"#, "refusal/invalid_arguments"),
            ends(&hello, "[", "refusal/invalid_arguments"),
            ends(&hello, &large, "refusal/invalid_arguments"),
            ends(&hostile(Misdeed::Abort), "{}", "handler_raised/unreachable"),
            ends(&hostile(Misdeed::Recurse), "{}", "handler_raised/stack_overflow"),
            ends(&hostile(Misdeed::Hoard), "{}", "handler_raised/unreachable+memory"),
            ends(&hostile(Misdeed::Exit), "{}", "handler_exit/exited"),
            ends(&marks(1), "{}", "ok"),
            ends(&marks(128), "{}", "ok"),
            ends(&shapeless, "{}", "invalid_return/unreadable"),
            kind(&spins, "{}", "timeout/deadline", EndMode::Deadline),
            kind(&sleeps, "{}", "timeout/blocked", EndMode::Deadline),
            kind(&spins, "{}", "dropped", EndMode::Dropped),
            kind(&sleeps, "{}", "dropped", EndMode::Dropped),
            kind(&waits, r#"{"a":1}"#, "ok", EndMode::Aborted),
            kind(&waits, &many_objects(Json::MAX_NODES / 2 - 1), "ok", EndMode::Aborted),
            ends(&tool(bytes("desk")), "{}", "ask_user"),
            ends(&ungranted, r#"{"url":"http://127.0.0.1:9/"}"#, "error"),
            ends(&asks, "{}", "ask_user"),
            ends(&panics, "{}", "handler_raised/native_panic"),
            kind(&hangs, "{}", "timeout/blocked", EndMode::Deadline),
            kind(&dropped, "{}", "dropped", EndMode::Dropped),
            ends(&absent, "{}", "not_found"),
        ];
        let mixed = Self { seed: stage.seed, kinds: Arc::new(kinds), waits, server };
        mixed.warm_up();
        mixed
    }

    /// Runs each kind of call that runs freely once in each cell. A cell keeps its stack and some
    /// of its memory; one that first reached its depth after a hundred thousand calls would look
    /// like a leak.
    fn warm_up(&self) {
        let (kinds, waits) = (Arc::clone(&self.kinds), self.waits.clone());
        wait(async move {
            let mut holders = VecDeque::new();
            for _ in 0..CELLS {
                holders.push_back(OccupiedCell::new(&waits));
            }
            all_started(&holders).await;
            let mut dice = SeededRng::of(0, "mixed", 0);
            for _ in 0..CELLS {
                // The cell of this holder is the only free one.
                holders.pop_front().expect("as many as cells").finish().await;
                for kind in kinds.iter().filter(|kind| kind.end_mode == EndMode::Normal) {
                    complete_call(kind, &mut dice).await;
                }
                holders.push_back(OccupiedCell::new(&waits));
                all_started(&holders).await;
            }
            for holder in holders {
                holder.finish().await;
            }
            // Each kind at full concurrency: a component's memory is kept for its next call.
            for index in 0..kinds.len() {
                let mut callers = JoinSet::new();
                for caller in 0..CALLERS {
                    let kinds = Arc::clone(&kinds);
                    callers.spawn(async move {
                        let mut dice = SeededRng::of(0, "mixed", caller);
                        complete_call(&kinds[index], &mut dice).await;
                    });
                }
                callers.join_all().await;
            }
        });
    }

    /// Counts the cells that can no longer be had: starts as many calls as there are cells and
    /// counts those that get none.
    fn lost_permits(&self) -> i64 {
        let tool = self.waits.clone();
        wait(async move {
            let holders = (0..CELLS).map(|_| OccupiedCell::new(&tool)).collect();
            let lost = CELLS as usize - all_started(&holders).await;
            for holder in holders {
                holder.finish().await;
            }
            lost as i64
        })
    }
}

/// A call that occupies a cell until its signal is raised.
struct OccupiedCell {
    started: Arc<AtomicBool>,
    signal: AbortSignal,
    call: JoinHandle<Completion>,
}

impl OccupiedCell {
    fn new(waits: &Tool) -> Self {
        let (started, signal, tool) =
            (Arc::<AtomicBool>::default(), AbortSignal::new(), waits.clone());
        let seen = Arc::clone(&started);
        let executor = Executor::new().with_events(move |event: Event| {
            if matches!(event, Event::Started { .. }) {
                seen.store(true, Ordering::Relaxed);
            }
        });
        let abort = signal.clone();
        let options = CallOptions { abort, stop_grace: Duration::MAX, ..CallOptions::default() };
        let call = tokio::spawn(async move {
            executor.call(&tool, ToolCall::new("1", "hostile", "{}"), options).await
        });
        Self { started, signal, call }
    }

    async fn finish(self) {
        self.signal.raise();
        self.call.await.expect("a completion");
    }
}

/// Waits until all holders have their cells, at most `CELL_TIMEOUT`. Returns the number that have
/// one.
async fn all_started(holders: &VecDeque<OccupiedCell>) -> usize {
    let began = Instant::now();
    loop {
        let started =
            holders.iter().filter(|holder| holder.started.load(Ordering::Relaxed)).count();
        if started == holders.len() || began.elapsed() > CELL_TIMEOUT {
            return started;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Arguments whose tree takes a hundred times the memory of their text. Each object is two values.
fn many_objects(objects: usize) -> String {
    format!(r#"{{"a":[{}]}}"#, vec![r#"{"":0}"#; objects].join(","))
}

/// Grants requests to these URLs, also at loopback addresses.
fn grants_for(urls: [&str; 3]) -> Grants {
    let mut grants = Grants::default();
    grants.http.extend(urls.map(|url| {
        let rule: HttpRule = url.parse().expect("a rule");
        rule.with_private(["127.0.0.0/8".parse().expect("a network")])
    }));
    grants
}

fn with_scratch() -> Grants {
    let mut grants = Grants::default();
    grants.scratch = Some(DirectoryQuota { bytes: 1 << 20, files: 100 });
    grants
}

fn with_keys() -> Grants {
    let mut grants = Grants::default();
    grants.kv.push("write notes/*".parse().expect("a rule"));
    grants
}

async fn complete_call(kind: &Kind, dice: &mut SeededRng) -> CallEnd {
    let timeout = match kind.end_mode {
        EndMode::Deadline => Duration::from_millis(dice.number(1..40)),
        EndMode::Normal | EndMode::Dropped | EndMode::Aborted => Duration::from_secs(60),
    };
    let limits = Limits { timeout, memory: MEMORY, fuel: u64::MAX, ..Limits::default() };
    let (signal, name) = (AbortSignal::new(), kind.tool.definition().name.as_str());
    let options =
        CallOptions { abort: signal.clone(), stop_grace: Duration::MAX, ..CallOptions::default() };
    let executor = Executor::new().with_limits(limits);
    let began = Instant::now();
    let call =
        executor.call(&kind.tool, ToolCall::new("1", name, kind.arguments.as_str()), options);
    let soon = Duration::from_millis(dice.number(0..10));
    let got = match kind.end_mode {
        EndMode::Normal | EndMode::Deadline => ending(&call.await.result),
        EndMode::Dropped => match tokio::time::timeout(soon, call).await {
            Ok(completion) => ending(&completion.result),
            Err(_) => "dropped".into(),
        },
        EndMode::Aborted => {
            let (completion, ()) = tokio::join!(call, async {
                tokio::time::sleep(soon).await;
                signal.raise();
            });
            ending(&completion.result)
        }
    };
    let late =
        (kind.end_mode == EndMode::Deadline).then(|| began.elapsed().saturating_sub(timeout));
    CallEnd { expected: kind.ends, got, late }
}

impl Scenario for Mixed {
    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let (seed, kinds) = (self.seed, Arc::clone(&self.kinds));
        let all = wait(async move {
            let mut callers = JoinSet::new();
            for caller in 0..CALLERS {
                let kinds = Arc::clone(&kinds);
                callers.spawn(async move {
                    let mut dice = SeededRng::of(seed, "mixed", case * CALLERS + caller);
                    let mut ended = Vec::new();
                    for _ in 0..CALLS_PER_CALLER {
                        ended.push(complete_call(&kinds[dice.index(kinds.len())], &mut dice).await);
                    }
                    ended
                });
            }
            callers.join_all().await
        });
        // The requests that the server keeps would look like a leak.
        drop(self.server.taken());
        for ended in all.into_iter().flatten() {
            if let Some(late) = ended.late {
                tally.overran(late);
            }
            let is_expected = ended.got == ended.expected
                || (ended.late.is_some() && ENDS_LATE.iter().any(|end| ended.got.starts_with(end)));
            tally.record_result(if is_expected {
                Ok(())
            } else {
                let what = format!("{} instead of {}", ended.got, ended.expected);
                Err(wrong(what, json!({"case": case}).to_string()))
            });
        }
    }

    fn close(&mut self, tally: &mut Tally) {
        tally.permits = self.lost_permits();
        if tally.permits > 0 {
            let detail = format!("{} of {CELLS} cells cannot be had any more", tally.permits);
            tally.note((Fault::Leak, "permits".to_owned(), detail));
        }
    }
}
