//! Tests of each way in which a compile worker ends, with a shell in the compiler's place.

use toolcell_test_guests::rows;

use super::Priority::{Background, Foreground};
use super::*;

const QUICK: &str = "quick/60";

fn worker(script: &str) -> Worker {
    let arguments = ["-c", script].map(OsString::from).to_vec();
    Worker { program: "/bin/sh".into(), arguments, limit: Duration::from_secs(60) }
}

#[test]
fn worker_exit_maps_to_compile_result() {
    // `is_lasting`: the component's fault, which another attempt would repeat.
    let exits = rows::<(&str, Result<&str, &str>, bool)>("engine/compile/worker", "exits");
    for (script, expected, is_lasting) in exits {
        let ended = worker(script).compile(Tier::Quick, Foreground, b"bytes", || true);
        assert_eq!(!matches!(ended, Err(NoCode::Interrupted(_))), is_lasting, "{script}");
        let ended =
            ended.map_err(|none| Error::from(none).to_string().replace(" (core dumped)", ""));
        let ended =
            ended.as_deref().map(|code| std::str::from_utf8(code).unwrap()).map_err(String::as_str);
        assert_eq!(ended, expected, "{script}");
    }
}

/// A component of up to 8 MiB that is made to stall the compiler costs at most half a minute,
/// including the second in which its compiler dies. A larger one has more in proportion.
#[test]
fn awaited_compile_ends_within_30_seconds() {
    let worker = Worker { limit: Engine::DEFAULT_COMPILE_TIME, ..worker("exec echo $0") };
    assert!(worker.seconds(Foreground, 8 << 20) + LAST_SECOND < 30);
    let sizes = [
        (Foreground, 0, "quick/25\n"),
        (Foreground, 18 << 20, "quick/56\n"),
        (Background, 0, "quick/50\n"),
        (Background, 18 << 20, "quick/112\n"),
    ];
    for (haste, bytes, order) in sizes {
        let starved = Duration::from_secs(worker.seconds(haste, bytes)) * 10;
        let wall = worker.wall(haste, bytes);
        assert!(wall > starved, "a compiler that has a tenth of a core is killed");
        let component = vec![0; bytes];
        let told = worker.compile(Tier::Quick, haste, &component, || true).unwrap();
        assert_eq!(String::from_utf8(told).unwrap(), order);
    }
}

#[test]
fn worker_output_is_bounded() {
    assert_eq!(bounded(io::repeat(0).take(100), 10).unwrap().len(), 10);
}

/// It neither works nor ends.
#[test]
fn idle_worker_is_killed_at_the_wall_limit() {
    let wall = Duration::from_millis(10);
    let ended = worker("exec sleep 5").run(QUICK, &[0; 1 << 20], wall, || true).unwrap();
    assert_eq!(ended.status.signal(), Some(SIGKILL));
}

#[test]
fn unwanted_worker_is_killed() {
    let ended = worker("exec sleep 600").run(QUICK, b"", Duration::MAX, || false).unwrap();
    assert_eq!(ended.status.signal(), Some(SIGKILL));
}

#[test]
fn compile_order_round_trips_or_is_refused() {
    for tier in [Tier::Quick, Tier::Optimised] {
        assert_eq!(parse_order(&order(tier, 7)), Some((tier, 7)));
    }
    for nonsense in ["", "60", "quick", "quick/", "fast/60", "quick/-1", "quick/60/1"] {
        let mut complaints = Vec::new();
        let code = compile_worker(nonsense, &b""[..], Vec::new(), &mut complaints);
        assert_eq!(i32::from(code), FAILED, "{nonsense}");
        assert!(!complaints.is_empty());
    }
}

#[test]
fn compile_worker_inherits_only_its_streams() {
    let file = tempfile::tempfile().unwrap();
    // This descriptor lacks the flag that would close it in the child.
    let _inherited = rustix::io::dup(&file).unwrap();
    let worker = worker("echo /proc/self/fd/*");
    let told = worker.compile(Tier::Quick, Foreground, b"", || true).unwrap();
    // The last one is the directory that the shell lists.
    assert_eq!(String::from_utf8(told).unwrap().split_whitespace().count(), 4);
}
