//! Tests of the request table of a worker process, without a child process: they play the events of
//! a worker (answers, deaths, messages) with invented times.

use toolcell_contract::call::AbortSignal;
use toolcell_contract::event::{CallEvents, Event, EventSink, Events, LogLevel};
use toolcell_contract::grants::rights::{Denial, Layer};
use toolcell_contract::limits::Limits;

use super::*;

/// Returns an empty table and a time.
fn table() -> (RequestTable, Instant) {
    (RequestTable::default(), Instant::now())
}

type Asked = (u64, UnboundedReceiver<CallerMessage>);

fn ask(requests: &mut RequestTable, again: Resend, now: Instant) -> Asked {
    ask_of("t", requests, again, now).unwrap()
}

fn ask_of(
    tool: &str,
    requests: &mut RequestTable,
    again: Resend,
    now: Instant,
) -> Result<Asked, Refusal> {
    let mut invocation = Invocation::scripted(tool, Limits { log: 100, ..Limits::default() });
    invocation.abort = AbortSignal::new();
    requests.ask(RequestKind::Call, Arc::new(invocation), again, now)
}

fn outgoing_texts(requests: &mut RequestTable) -> Vec<String> {
    let told = |outgoing| match outgoing {
        HostMessage::Ask((number, _, _)) => format!("ask {number}"),
        HostMessage::Abort(number) => format!("abort {number}"),
        HostMessage::Cancel(number) => format!("cancel {number}"),
    };
    std::iter::from_fn(|| requests.outgoing().map(told)).collect()
}

/// Returns the end of a request in one word.
fn end(answer: &mut UnboundedReceiver<CallerMessage>) -> &'static str {
    match answer.try_recv() {
        Ok(CallerMessage::End(Reply::Answer(_))) => "answered",
        Ok(CallerMessage::End(Reply::Lost(CallResult::ToolError(ToolError::HandlerExit(
            Exit::ProcessEnded,
        ))))) => "died",
        Ok(CallerMessage::End(Reply::Lost(CallResult::Refusal(Refusal::Restarting {
            ..
        })))) => "refused",
        Ok(CallerMessage::End(Reply::Lost(_))) => "lost",
        Ok(CallerMessage::Started | CallerMessage::Notification(_)) => "news",
        Err(_) => "open",
    }
}

fn exit_child(requests: &mut RequestTable, now: Instant) -> Phase {
    requests.child_exited(now).ended.into_iter().for_each(FinishedRequest::send);
    requests.phase
}

/// A log line of the tool with this many bytes.
fn line(bytes: usize) -> Notification {
    Notification::Log { source: LogSource::Log, level: LogLevel::Info, message: "x".repeat(bytes) }
}

#[test]
fn child_exit_ends_sent_requests_and_keeps_pending() {
    let (mut requests, now) = table();
    let (first, mut had) = ask(&mut requests, Resend::Never, now);
    let (second, mut twice) = ask(&mut requests, Resend::Once, now);
    assert_eq!(outgoing_texts(&mut requests), ["ask 1", "ask 2"]);
    let (third, mut waits) = ask(&mut requests, Resend::Never, now);
    requests.abort(first);
    assert_eq!(exit_child(&mut requests, now), Phase::Starting);
    assert_eq!([end(&mut had), end(&mut twice), end(&mut waits)], ["died", "open", "open"]);
    let asked = outgoing_texts(&mut requests);
    assert_eq!(asked, ["ask 2", "ask 3"], "once more comes before what came later");
    assert!(!requests.is_open(first) && requests.is_open(second) && requests.is_open(third));
    exit_child(&mut requests, now);
    assert_eq!([end(&mut twice), end(&mut waits)], ["died", "died"], "not a third time");
}

#[test]
fn abandoned_request_is_forgotten_or_cancelled() {
    let (mut requests, now) = table();
    let (first, _) = ask(&mut requests, Resend::Once, now);
    assert!(!requests.remove_caller(first).0 && outgoing_texts(&mut requests).is_empty());
    let (late, mut waits) = ask(&mut requests, Resend::Once, now);
    requests.refuse_waiting(late).expect("it waits").send();
    assert!(end(&mut waits) == "refused" && outgoing_texts(&mut requests).is_empty());
    let (second, _) = ask(&mut requests, Resend::Once, now);
    assert_eq!(outgoing_texts(&mut requests), ["ask 3"]);
    assert!(requests.refuse_waiting(second).is_none());
    requests.abort(second);
    assert!(requests.remove_caller(second).0);
    assert_eq!(outgoing_texts(&mut requests), ["abort 3", "cancel 3"]);
    exit_child(&mut requests, now);
    assert!(!requests.is_open(second), "no caller waits");
    assert!(outgoing_texts(&mut requests).is_empty(), "it is not asked again");
    requests.remove_caller(second);
    requests.end(second, Reply::died()).send();
}

#[test]
fn restart_backoff_grows_and_an_answer_resets_it() {
    let (mut requests, now) = table();
    let millis = |phase| match phase {
        Phase::Resting(until) => u64::try_from((until - now).as_millis()).unwrap(),
        Phase::Starting | Phase::Serving(_) | Phase::Closed => 0,
    };
    let (_, mut waits) = ask(&mut requests, Resend::Never, now);
    let rests: Vec<_> = (0..6).map(|_| millis(exit_child(&mut requests, now))).collect();
    assert_eq!((rests, end(&mut waits)), (vec![0, 100, 200, 400, 800, 1600], "refused"));
    let late = now + Duration::from_millis(601);
    let refused =
        |requests: &mut RequestTable, now| ask_of("t", requests, Resend::Never, now).err();
    let retry_after = Duration::from_millis(1600);
    assert_eq!(refused(&mut requests, now), Some(Refusal::Restarting { retry_after }));
    assert_eq!(refused(&mut requests, late), None, "it is worth waiting for");
    for _ in 0..40 {
        assert!(millis(exit_child(&mut requests, now)) <= 30_000);
    }
    requests.phase = Phase::Serving(1);
    let (number, mut answer) = ask(&mut requests, Resend::Never, now);
    requests.end(number, Reply::Answer(Answer::Visible(true))).send();
    assert_eq!((end(&mut answer), exit_child(&mut requests, now)), ("answered", Phase::Starting));
    requests.phase = Phase::Closed;
    assert_eq!(exit_child(&mut requests, now), Phase::Closed);
}

#[test]
fn open_requests_and_their_messages_are_bounded() {
    let (mut requests, now) = table();
    let (number, told) = ask(&mut requests, Resend::Never, now);
    assert!(requests.about(number, &line(0)).is_none(), "the child does not have it yet");
    outgoing_texts(&mut requests);
    assert!(requests.about(number, &line(99)).is_some() && requests.about(77, &line(0)).is_none());
    assert!(requests.remove_caller(number).1.is_some());
    assert!(requests.about(number, &line(0)).is_none(), "no asker hears it");
    drop(told);
    let kept: Vec<_> = (1..MAX_OPEN).map(|_| ask(&mut requests, Resend::Never, now)).collect();
    let refused = ask_of("t", &mut requests, Resend::Never, now).unwrap_err();
    assert_eq!((refused.kind(), kept.len()), ("overloaded", MAX_OPEN - 1));
}

/// Source: docs/threat-model.md, row 87.
#[test]
fn notification_kinds_have_separate_bounds() {
    let (mut requests, now) = table();
    let (number, _told) = ask(&mut requests, Resend::Never, now);
    outgoing_texts(&mut requests);
    let long = || Some("x".repeat(1 << 20));
    let kept =
        |requests: &mut RequestTable, said: &Notification| requests.about(number, said).is_some();
    let progress = || Notification::Progress { done: 1, total: None, message: long() };
    let progress = (0..9).filter(|_| kept(&mut requests, &progress())).count();
    let denial = Denial::new(Layer::Tool, "GET".into(), Some("http".into()));
    let lines = (0..41).filter(|_| kept(&mut requests, &line(9))).count();
    let denied = kept(&mut requests, &Notification::Denied(denial));
    assert_eq!((progress, lines, denied), (7, 40, true));
    let meter = &requests.open[&number].caller.as_ref().unwrap().invocation.meter;
    assert_eq!(meter.log_bytes_dropped.load(Ordering::Relaxed), 10, "the last line");
}

#[test]
fn tool_that_keeps_killing_children_is_quarantined() {
    let (mut requests, now) = table();
    let asked = |requests: &mut RequestTable, tool: &str| {
        let (number, told) = ask_of(tool, requests, Resend::Once, now)?;
        outgoing_texts(requests);
        Ok::<_, Refusal>((number, told))
    };
    let answered = |requests: &mut RequestTable, number| {
        requests.end(number, Reply::Answer(Answer::Validated(Ok(Vec::new())))).send()
    };
    for death in 1..=DEATHS {
        let (bad, _told) = asked(&mut requests, "bad").unwrap();
        let (slow, _told) = asked(&mut requests, "slow").unwrap();
        let (good, _told) = asked(&mut requests, "good").unwrap();
        answered(&mut requests, good);
        let quarantined = requests.child_exited(now).quarantined;
        assert_eq!(quarantined == ["bad"], death == DEATHS, "{quarantined:?}");
        assert_eq!(requests.is_open(bad), death < DEATHS, "and not once more");
        answered(&mut requests, slow);
        requests.remove_caller(bad);
    }
    assert_eq!(asked(&mut requests, "bad").err(), Some(Refusal::Quarantined));
    assert!(asked(&mut requests, "slow").is_ok() && asked(&mut requests, "good").is_ok());
}

/// An embedder's event sink that panics when it is dropped.
struct Bomb;

impl EventSink for Bomb {
    fn emit(&self, _event: Event) {}
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn request_leaves_the_table_before_it_is_dropped() {
    let (mut requests, now) = table();
    let asked = |requests: &mut RequestTable| {
        let mut invocation = Invocation::scripted("t", Limits::default());
        invocation.events = Arc::new(CallEvents::new(Events::to(Arc::new(Bomb))));
        let invocation = Arc::new(invocation);
        let held = Arc::downgrade(&invocation);
        let (number, _) = requests.ask(RequestKind::Call, invocation, Resend::Never, now).unwrap();
        outgoing_texts(requests);
        (number, move || held.strong_count())
    };
    let (number, held) = asked(&mut requests);
    let ended = requests.end(number, Reply::died());
    assert_eq!(held(), 1);
    ended.send();
    assert_eq!(held(), 0);
    let (_, held) = asked(&mut requests);
    let burial = requests.child_exited(now);
    assert_eq!(held(), 1);
    burial.ended.into_iter().for_each(FinishedRequest::send);
    assert_eq!(held(), 0);
    let (number, held) = asked(&mut requests);
    let (_, asker) = requests.remove_caller(number);
    assert_eq!(held(), 1);
    guarded(|| drop(asker));
    assert!(requests.is_open(number), "the child has it");
    assert_eq!(held(), 0, "nothing of who asked is kept");
}

/// A child could end requests that wait for another child otherwise.
#[test]
fn child_answers_only_requests_sent_to_it() {
    let (mut requests, now) = table();
    let (first, mut had) = ask(&mut requests, Resend::Never, now);
    assert!(!requests.is_sent(first) && !requests.is_sent(first + 1));
    outgoing_texts(&mut requests);
    assert!(requests.is_sent(first));
    assert!(requests.begun(first).is_some() && requests.begun(first).is_none(), "it begins once");
    requests.end(first, Reply::died()).send();
    assert!(end(&mut had) == "died" && !requests.is_sent(first));
}
