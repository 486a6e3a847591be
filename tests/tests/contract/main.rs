//! Tests of the contract of a call, with the library: definitions, results, runs, steps, and their
//! forms.

mod events;
mod executor;
mod faults;
mod forms;
mod misuse;
mod policy;
mod programs;
mod providers;
mod registry;
mod results;
mod resume;
mod retry;
mod rules;
mod spans;
mod step;
mod strangers;
mod written;
