//! Limits with the units of the command line.
//!
//! In: what a file says. Out: [`Limits`]; of such, what a reader should look at.

use std::str::FromStr;

use toolcell::Limits;

use crate::file;
use crate::file::{Amount, At};
use crate::problem::Problems;
use crate::units::{BadUnit, Count, Size, Time};

/// Sets a number of bytes.
type With = fn(Limits, u64) -> Limits;

/// `base` with what the file says instead.
pub(crate) fn over(problems: &mut Problems<'_>, said: &file::Limits, base: Limits) -> Limits {
    let file::Limits { timeout, fuel, memory, arguments, result, log, host_calls } = said;
    let mut limits = base;
    if let Some(Time(time)) = amount(problems, timeout.as_ref()) {
        limits = limits.with_timeout(time);
    }
    if let Some(Count(fuel)) = amount(problems, fuel.as_ref()) {
        limits = limits.with_fuel(fuel);
    }
    if let Some(Count(calls)) = amount(problems, host_calls.as_ref()) {
        limits = limits.with_host_calls(calls);
    }
    let sizes: [(_, With); 4] = [
        (memory, Limits::with_memory),
        (arguments, Limits::with_arguments),
        (result, Limits::with_result),
        (log, Limits::with_log),
    ];
    for (said, with) in sizes {
        if let Some(Size(bytes)) = amount(problems, said.as_ref()) {
            limits = with(limits, bytes);
        }
    }
    limits
}

/// Limits that are not the defaults, in words: name, what it is, what it would be.
pub fn unusual(limits: &Limits) -> Vec<[String; 3]> {
    let usual = Limits::default();
    let all = |limits: &Limits| {
        [
            ("timeout", Time(limits.timeout).to_string()),
            ("fuel", Count(limits.fuel).to_string()),
            ("memory", Size(limits.memory).to_string()),
            ("arguments", Size(limits.arguments).to_string()),
            ("result", Size(limits.result).to_string()),
            ("log", Size(limits.log).to_string()),
            ("host_calls", Count(limits.host_calls).to_string()),
        ]
    };
    let pairs = all(limits).into_iter().zip(all(&usual)).filter(|(said, usual)| said != usual);
    pairs.map(|((name, said), (_, usual))| [name.to_owned(), said, usual]).collect()
}

/// A number with a unit, unless there is none or it cannot be read.
pub(crate) fn amount<T: FromStr<Err = BadUnit>>(
    problems: &mut Problems<'_>,
    said: Option<&At<Amount>>,
) -> Option<T> {
    let At { value, span } = said?;
    match value.to_string().parse() {
        Ok(amount) => Some(amount),
        Err(bad) => {
            let message =
                format!("`{}` is not {}", value.to_string().escape_debug(), bad.expected());
            problems.error(span, message, bad.to_string());
            None
        }
    }
}
