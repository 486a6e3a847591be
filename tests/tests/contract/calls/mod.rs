//! Tests of one call: handlers and their errors, refusals and rules, questions and their answers,
//! retries and breakers, spans, and untrusted input.

mod executor;
mod faults;
mod misuse;
mod resume;
mod retry;
mod rules;
mod spans;
mod strangers;
