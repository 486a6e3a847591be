//! The request table of a worker process, without a child.

use serde_json::Value;

use super::*;
use crate::call::{AbortSignal, CallContext, ToolCall};
use crate::event::{CallEvents, Event, EventSink, Events, LogLevel};
use crate::limits::Limits;
use crate::rights::{Denial, Layer};

/// Returns an empty table and a time.
fn book() -> (Book, Instant) {
    (Book::new(), Instant::now())
}

fn ask(book: &mut Book, again: Again, now: Instant) -> (u64, UnboundedReceiver<Told>) {
    ask_of("t", book, again, now).unwrap()
}

fn ask_of(
    tool: &str,
    book: &mut Book,
    again: Again,
    now: Instant,
) -> Result<(u64, UnboundedReceiver<Told>), Refusal> {
    let call = ToolCall::new("1", tool, "{}");
    let mut invocation = Invocation::aside(
        call,
        Value::Null,
        CallContext::default(),
        Limits::default().with_log(100),
    );
    invocation.abort = AbortSignal::new();
    book.ask(What::Call, Arc::new(invocation), again, now)
}

fn handed_over(book: &mut Book) -> Vec<String> {
    let told = |outgoing| match outgoing {
        Outgoing::Ask(number, _, _) => format!("ask {number}"),
        Outgoing::Abort(number) => format!("abort {number}"),
        Outgoing::Cancel(number) => format!("cancel {number}"),
    };
    std::iter::from_fn(|| book.outgoing().map(told)).collect()
}

/// Returns the end of a request in one word.
fn end(answer: &mut UnboundedReceiver<Told>) -> &'static str {
    match answer.try_recv() {
        Ok(Told::End(Reply::Answer(_))) => "answered",
        Ok(Told::End(Reply::Lost(CallResult::ToolError(ToolError::HandlerExit(Exit::Died))))) => {
            "died"
        }
        Ok(Told::End(Reply::Lost(CallResult::Refusal(Refusal::Restarting { .. })))) => "refused",
        Ok(Told::End(Reply::Lost(_))) => "lost",
        Ok(Told::Started | Told::Said(_)) => "news",
        Err(_) => "open",
    }
}

fn bury(book: &mut Book, now: Instant) -> Phase {
    book.bury(now).ended.into_iter().for_each(Ended::tell);
    book.phase
}

/// A log line of the tool with this many bytes.
fn line(bytes: usize) -> Said {
    Said::Log { source: LogSource::Log, level: LogLevel::Info, message: "x".repeat(bytes) }
}

#[test]
fn child_exit_ends_sent_requests_and_keeps_pending() {
    let (mut book, now) = book();
    let (first, mut had) = ask(&mut book, Again::Never, now);
    let (second, mut twice) = ask(&mut book, Again::Once, now);
    assert_eq!(handed_over(&mut book), ["ask 1", "ask 2"]);
    let (third, mut waits) = ask(&mut book, Again::Never, now);
    book.abort(first);
    assert_eq!(bury(&mut book, now), Phase::Starting);
    assert_eq!([end(&mut had), end(&mut twice), end(&mut waits)], ["died", "open", "open"]);
    assert_eq!(
        handed_over(&mut book),
        ["ask 2", "ask 3"],
        "once more comes before what came later"
    );
    assert!(!book.is_open(first) && book.is_open(second) && book.is_open(third));
    bury(&mut book, now);
    assert_eq!([end(&mut twice), end(&mut waits)], ["died", "died"], "not a third time");
}

#[test]
fn abandoned_request_is_forgotten_or_cancelled() {
    let (mut book, now) = book();
    let (first, _) = ask(&mut book, Again::Once, now);
    assert!(!book.leave(first).0 && handed_over(&mut book).is_empty());
    let (late, mut waits) = ask(&mut book, Again::Once, now);
    book.refuse_waiting(late).expect("it waits").tell();
    assert!(end(&mut waits) == "refused" && handed_over(&mut book).is_empty());
    let (second, _) = ask(&mut book, Again::Once, now);
    assert_eq!(handed_over(&mut book), ["ask 3"]);
    assert!(book.refuse_waiting(second).is_none());
    book.abort(second);
    assert!(book.leave(second).0);
    assert_eq!(handed_over(&mut book), ["abort 3", "cancel 3"]);
    bury(&mut book, now);
    assert!(
        !book.is_open(second) && handed_over(&mut book).is_empty(),
        "no caller waits: it is not asked again"
    );
    book.leave(second);
    book.end(second, Reply::died()).tell();
}

#[test]
fn restart_backoff_grows_and_an_answer_resets_it() {
    let (mut book, now) = book();
    let millis = |phase| match phase {
        Phase::Resting(until) => u64::try_from((until - now).as_millis()).unwrap(),
        Phase::Starting | Phase::Serving(_) | Phase::Closed => 0,
    };
    let (_, mut waits) = ask(&mut book, Again::Never, now);
    let rests: Vec<_> = (0..6).map(|_| millis(bury(&mut book, now))).collect();
    assert_eq!((rests, end(&mut waits)), (vec![0, 100, 200, 400, 800, 1600], "refused"));
    let late = now + Duration::from_millis(601);
    let refused = |book: &mut Book, now| {
        let call = ToolCall::new("1", "t", "{}");
        let aside = Invocation::aside(call, Value::Null, CallContext::default(), Limits::default());
        book.ask(What::Call, Arc::new(aside), Again::Never, now).err()
    };
    let retry_after = Duration::from_millis(1600);
    assert_eq!(refused(&mut book, now), Some(Refusal::Restarting { retry_after }));
    assert_eq!(refused(&mut book, late), None, "it is worth waiting for");
    for _ in 0..40 {
        assert!(millis(bury(&mut book, now)) <= 30_000);
    }
    book.phase = Phase::Serving(1);
    let (number, mut answer) = ask(&mut book, Again::Never, now);
    book.end(number, Reply::Answer(Answer::Visible(true))).tell();
    assert_eq!((end(&mut answer), bury(&mut book, now)), ("answered", Phase::Starting));
    book.phase = Phase::Closed;
    assert_eq!(bury(&mut book, now), Phase::Closed);
}

#[test]
fn open_requests_and_their_messages_are_bounded() {
    let (mut book, now) = book();
    let (number, told) = ask(&mut book, Again::Never, now);
    assert!(book.about(number, &line(0)).is_none(), "the child does not have it yet");
    handed_over(&mut book);
    assert!(book.about(number, &line(99)).is_some() && book.about(77, &line(0)).is_none());
    assert!(
        book.leave(number).1.is_some() && book.about(number, &line(0)).is_none(),
        "no asker hears it"
    );
    drop(told);
    let kept: Vec<_> = (1..MAX_OPEN).map(|_| ask(&mut book, Again::Never, now)).collect();
    let call = ToolCall::new("1", "t", "{}");
    let aside = Invocation::aside(call, Value::Null, CallContext::default(), Limits::default());
    let refused = book.ask(What::Call, Arc::new(aside), Again::Never, now);
    assert_eq!(
        (refused.err().map(|refusal| refusal.kind()), kept.len()),
        (Some("overloaded"), MAX_OPEN - 1)
    );
}

/// Source: docs/threat-model.md, row 87.
#[test]
fn notification_kinds_have_separate_bounds() {
    let (mut book, now) = book();
    let (number, _told) = ask(&mut book, Again::Never, now);
    handed_over(&mut book);
    let long = || Some("x".repeat(1 << 20));
    let kept = |book: &mut Book, said: &Said| book.about(number, said).is_some();
    let progress = (0..9)
        .filter(|_| kept(&mut book, &Said::Progress { done: 1, total: None, message: long() }))
        .count();
    let denial = Denial { layer: Layer::Tool, request: "GET".into(), grant: Some("http".into()) };
    let lines = (0..41).filter(|_| kept(&mut book, &line(9))).count();
    assert_eq!((progress, lines, kept(&mut book, &Said::Denied(denial))), (7, 40, true));
    let lost = book.open[&number]
        .asker
        .as_ref()
        .unwrap()
        .invocation
        .meter
        .log_bytes_lost
        .load(Ordering::Relaxed);
    assert_eq!(lost, 10, "the last line");
}

#[test]
fn tool_that_keeps_killing_children_is_quarantined() {
    let (mut book, now) = book();
    let asked = |book: &mut Book, tool: &str| {
        let (number, told) = ask_of(tool, book, Again::Once, now)?;
        handed_over(book);
        Ok::<_, Refusal>((number, told))
    };
    let answered = |book: &mut Book, number| {
        book.end(number, Reply::Answer(Answer::Faults(Vec::new()))).tell()
    };
    for death in 1..=DEATHS {
        let (bad, _told) = asked(&mut book, "bad").unwrap();
        let (slow, _told) = asked(&mut book, "slow").unwrap();
        let (good, _told) = asked(&mut book, "good").unwrap();
        answered(&mut book, good);
        let quarantined = book.bury(now).quarantined;
        assert_eq!(quarantined == ["bad"], death == DEATHS, "{quarantined:?}");
        assert_eq!(book.is_open(bad), death < DEATHS, "and not once more");
        answered(&mut book, slow);
        book.leave(bad);
    }
    assert_eq!(asked(&mut book, "bad").err(), Some(Refusal::Quarantined));
    assert!(asked(&mut book, "slow").is_ok() && asked(&mut book, "good").is_ok());
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
    let (mut book, now) = book();
    let asked = |book: &mut Book| {
        let call = ToolCall::new("1", "t", "{}");
        let mut invocation =
            Invocation::aside(call, Value::Null, CallContext::default(), Limits::default());
        invocation.events = Arc::new(CallEvents::new(Events::to(Arc::new(Bomb))));
        let invocation = Arc::new(invocation);
        let held = Arc::downgrade(&invocation);
        let (number, _) = book.ask(What::Call, invocation, Again::Never, now).unwrap();
        handed_over(book);
        (number, move || held.strong_count())
    };
    let (number, held) = asked(&mut book);
    let ended = book.end(number, Reply::died());
    assert_eq!(held(), 1);
    ended.tell();
    assert_eq!(held(), 0);
    let (_, held) = asked(&mut book);
    let burial = book.bury(now);
    assert_eq!(held(), 1);
    burial.ended.into_iter().for_each(Ended::tell);
    assert_eq!(held(), 0);
    let (number, held) = asked(&mut book);
    let (_, asker) = book.leave(number);
    assert_eq!(held(), 1);
    fenced(|| drop(asker));
    assert_eq!(
        (held(), book.is_open(number)),
        (0, true),
        "the child has it, and nothing of who asked is kept"
    );
}

/// A child could end requests that wait for another child otherwise.
#[test]
fn child_answers_only_requests_sent_to_it() {
    let (mut book, now) = book();
    let (first, mut had) = ask(&mut book, Again::Never, now);
    assert!(!book.is_sent(first) && !book.is_sent(first + 1));
    handed_over(&mut book);
    assert!(book.is_sent(first));
    assert!(book.begun(first).is_some() && book.begun(first).is_none(), "it begins once");
    book.end(first, Reply::died()).tell();
    assert!(end(&mut had) == "died" && !book.is_sent(first));
}
