//! A cordon's book, without a child.

use serde_json::Value;

use super::*;
use crate::call::{AbortSignal, CallContext, ToolCall};
use crate::limits::Limits;

/// A book, and a moment.
fn book() -> (Book, Instant) {
    (Book::new(), Instant::now())
}

fn ask(book: &mut Book, again: Again, now: Instant) -> (u64, oneshot::Receiver<Reply>) {
    let call = ToolCall::new("1", "t", "{}");
    let mut invocation = Invocation::aside(call, Value::Null, CallContext::default(), Limits::default().with_log(0));
    invocation.abort = AbortSignal::new();
    book.ask(What::Call, Arc::new(invocation), again, now).unwrap()
}

fn handed_over(book: &mut Book) -> Vec<String> {
    let told = |outgoing| match outgoing {
        Outgoing::Ask(number, _, _) => format!("ask {number}"),
        Outgoing::Abort(number) => format!("abort {number}"),
        Outgoing::Cancel(number) => format!("cancel {number}"),
    };
    std::iter::from_fn(|| book.outgoing().map(told)).collect()
}

/// In one word.
fn end(answer: &mut oneshot::Receiver<Reply>) -> &'static str {
    match answer.try_recv() {
        Ok(Reply::Answer(_)) => "answered",
        Ok(Reply::Lost(CallResult::ToolError(ToolError::HandlerExit(Exit::Died)))) => "died",
        Ok(Reply::Lost(CallResult::Refusal(Refusal::Overloaded { .. }))) => "refused",
        Ok(Reply::Lost(_)) => "lost",
        Err(_) => "open",
    }
}

#[test]
fn what_a_dead_child_had_ends_and_what_waits_is_the_next_ones() {
    let (mut book, now) = book();
    let (first, mut had) = ask(&mut book, Again::Never, now);
    let (second, mut twice) = ask(&mut book, Again::Once, now);
    assert_eq!(handed_over(&mut book), ["ask 1", "ask 2"]);
    let (third, mut waits) = ask(&mut book, Again::Never, now);
    book.abort(first);
    assert_eq!(book.bury(now), Phase::Starting);
    assert_eq!([end(&mut had), end(&mut twice), end(&mut waits)], ["died", "open", "open"]);
    assert_eq!(handed_over(&mut book), ["ask 2", "ask 3"], "once more comes before what came later");
    assert!(!book.is_open(first) && book.is_open(second) && book.is_open(third));
    book.bury(now);
    assert_eq!([end(&mut twice), end(&mut waits)], ["died", "died"], "not a third time");
}

#[test]
fn who_leaves_is_forgotten_at_once_or_given_up_by_the_child() {
    let (mut book, now) = book();
    let (first, _) = ask(&mut book, Again::Once, now);
    assert!(!book.leave(first) && handed_over(&mut book).is_empty());
    let (late, mut waits) = ask(&mut book, Again::Once, now);
    book.refuse_waiting(late);
    assert!(end(&mut waits) == "refused" && handed_over(&mut book).is_empty());
    let (second, _) = ask(&mut book, Again::Once, now);
    assert_eq!(handed_over(&mut book), ["ask 3"]);
    book.refuse_waiting(second);
    book.abort(second);
    assert!(book.leave(second));
    assert_eq!(handed_over(&mut book), ["abort 3", "cancel 3"]);
    book.bury(now);
    assert!(!book.is_open(second) && handed_over(&mut book).is_empty(), "nobody waits: it is not asked again");
    book.leave(second);
    book.end(second, Reply::died());
}

#[test]
fn a_child_that_dies_again_and_again_rests_and_an_answer_forgives_it() {
    let (mut book, now) = book();
    let millis = |phase| match phase {
        Phase::Resting(until) => u64::try_from((until - now).as_millis()).unwrap(),
        Phase::Starting | Phase::Serving(_) | Phase::Closed => 0,
    };
    let (_, mut waits) = ask(&mut book, Again::Never, now);
    let rests: Vec<_> = (0..6).map(|_| millis(book.bury(now))).collect();
    assert_eq!((rests, end(&mut waits)), (vec![0, 100, 200, 400, 800, 1600], "refused"));
    let late = now + Duration::from_millis(601);
    let refused = |book: &mut Book, now| {
        let call = ToolCall::new("1", "t", "{}");
        let aside = Invocation::aside(call, Value::Null, CallContext::default(), Limits::default());
        book.ask(What::Call, Arc::new(aside), Again::Never, now).err()
    };
    let retry_after = Duration::from_millis(1600);
    assert_eq!(refused(&mut book, now), Some(Refusal::Overloaded { retry_after }));
    assert_eq!(refused(&mut book, late), None, "it is worth waiting for");
    for _ in 0..40 {
        assert!(millis(book.bury(now)) <= 30_000);
    }
    book.phase = Phase::Serving(1);
    let (number, mut answer) = ask(&mut book, Again::Never, now);
    book.end(number, Reply::Answer(Answer::Visible(true)));
    assert_eq!((end(&mut answer), book.bury(now)), ("answered", Phase::Starting));
    book.phase = Phase::Closed;
    assert_eq!(book.bury(now), Phase::Closed);
}

#[test]
fn there_is_a_bound_on_what_is_open_and_on_what_is_said() {
    let (mut book, now) = book();
    let (number, _) = ask(&mut book, Again::Never, now);
    assert!(book.about(number, 1).is_none(), "the child does not have it yet");
    handed_over(&mut book);
    assert!(book.about(number, NEWS).is_some() && book.about(number, 1).is_none() && book.about(77, 1).is_none());
    let kept: Vec<_> = (1..MAX_OPEN).map(|_| ask(&mut book, Again::Never, now)).collect();
    let call = ToolCall::new("1", "t", "{}");
    let aside = Invocation::aside(call, Value::Null, CallContext::default(), Limits::default());
    let refused = book.ask(What::Call, Arc::new(aside), Again::Never, now);
    assert_eq!((refused.err().map(|refusal| refusal.kind()), kept.len()), (Some("overloaded"), MAX_OPEN - 1));
}
