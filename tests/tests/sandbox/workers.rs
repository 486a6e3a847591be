//! Tests worker processes against attackers: messages from a compromised worker, and the file
//! descriptors that a worker inherits.

use std::fs;
use std::sync::mpsc;
use std::time::Duration;

use toolcell::process::WorkerProcess;
use toolcell::{CallOptions, Completion, Executor, Limits, Tool, ToolCall};
use toolcell_test_guests::rows;
use toolcell_tests::{ending, own_process, wait};

/// Time after which a call counts as hung.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time of a call that only its deadline ends.
const SHORT: Duration = Duration::from_millis(400);
/// MiB that this process may grow by under a flood: what is kept for one call, many times over.
const GROWTH: u64 = 256;

fn worker_process(program: &str, words: &[&str]) -> WorkerProcess {
    let builder = WorkerProcess::builder(program)
        .arguments(words.iter().copied())
        .grace(Duration::from_millis(50));
    wait(builder.start()).expect("it starts")
}

async fn complete(tool: Tool, time: Duration) -> Completion {
    let call = ToolCall::new("call-1", tool.definition().name.as_str(), "{}");
    let executor = Executor::new().with_limits(Limits { timeout: time, ..Limits::default() });
    executor.call(&tool, call, CallOptions::default()).await
}

/// Makes a call of a tool, which must end, and returns its ending.
fn ends(worker_process: &WorkerProcess, tool: &str, time: Duration) -> String {
    let tool = worker_process.tool(tool).expect("the tool").clone();
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || drop(end.send(ending(&wait(complete(tool, time)).result))));
    ended.recv_timeout(PATIENCE).expect("it ends")
}

/// Returns the resident memory of this process in MiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its size");
    line.trim_end_matches("kB").trim().parse::<u64>().expect("a number") >> 10
}

#[test]
fn every_call_ends_despite_a_hostile_worker() {
    // The memory of the process is measured.
    own_process::run(module_path!(), "every_call_ends_despite_a_hostile_worker", || {
        let honest = worker_process(env!("CARGO_BIN_EXE_ward"), &["tools"]);
        for (mode, expected) in
            rows::<(&str, &str)>("sandbox/workers", "every_call_ends_despite_a_hostile_worker")
        {
            let (impostor, before) =
                (worker_process(env!("CARGO_BIN_EXE_impostor"), &[mode]), resident());
            let time = if expected == "timeout/blocked" { SHORT } else { PATIENCE };
            assert_eq!(ends(&impostor, "asked", time), expected, "{mode}");
            // The next call goes to the next child, if it accepts one: it ends too.
            let again = ends(&impostor, "asked", SHORT);
            let known = [expected, "handler_exit/process_ended", "timeout/blocked"];
            let is_known = known.contains(&again.as_str()) || again.starts_with("refusal/");
            assert!(is_known, "{mode}: {again}");
            let grown = resident().saturating_sub(before);
            assert!(grown < GROWTH, "{mode}: {grown} MiB");
            assert_eq!(ends(&honest, "pid", PATIENCE), "ok", "{mode}: of another tenant");
        }
    });
}

/// A child may not answer a call that it was not sent.
#[test]
fn worker_flooding_foreign_answers_is_killed() {
    let impostor = worker_process(env!("CARGO_BIN_EXE_impostor"), &["floods of others"]);
    let before = impostor.pid();
    assert_eq!(ends(&impostor, "asked", PATIENCE), "handler_exit/process_ended");
    assert_ne!(impostor.pid(), before);
}

/// Returns the descriptors of a process: the number of each, and where it leads to.
fn descriptors(process: &str) -> Vec<(String, String)> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).expect("descriptors").flatten();
    let link = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?.display().to_string();
        Some((entry.file_name().to_string_lossy().into_owned(), link))
    };
    open.filter_map(link).collect()
}

/// Such as a file that a C library has open.
#[test]
fn worker_inherits_no_foreign_descriptors() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    // `dup` does not set close-on-exec.
    let _inherited = rustix::io::dup(file.as_file()).expect("a descriptor");
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let _also = [rustix::io::dup(&reader), rustix::io::dup(&listener)]
        .map(|also| also.expect("a descriptor"));
    let worker_process = worker_process(env!("CARGO_BIN_EXE_ward"), &["tools"]);
    let pid = worker_process.pid().expect("a child");
    let links = descriptors(&pid.to_string());
    let own = file.path().display().to_string();
    assert!(links.len() >= 3 && links.iter().all(|(_, link)| *link != own), "{links:?}");
    let streams = ["0", "1", "2"];
    let pipes = links
        .iter()
        .filter(|(number, link)| link.starts_with("pipe:") && !streams.contains(&number.as_str()));
    assert_eq!(pipes.count(), 0, "{links:?}");
    let mine = descriptors("self");
    let is_shared = |link: &str| mine.iter().any(|(_, own)| own == link);
    let shared = links.iter().filter(|(_, link)| link.starts_with("socket:") && is_shared(link));
    assert_eq!(shared.count(), 0, "{links:?}");
}
