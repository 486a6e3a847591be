//! Converts the limits of one call from the file's notation, such as `2s` or `64MiB`, to `Limits`.
//!
//! Reading a configuration calls [`overlaid`] for each section with limits. It takes the limits of
//! the section and a base, and returns the base with the section's values in their place; a value
//! that cannot be parsed is a problem with its line. [`unusual`] returns the limits that differ
//! from the defaults, in words, for the page of `toolcell approve`. [`amount`] parses one number
//! with a unit, also for quotas and directories.

use std::str::FromStr;

use toolcell::Limits;

use crate::problem::Problems;
use crate::schema::{self, Amount, At};
use crate::text::units::{Count, InvalidUnit, Size, Time};

/// Returns `base`, with the limits of the file in their place.
pub(crate) fn overlaid(problems: &mut Problems<'_>, said: &schema::Limits, base: Limits) -> Limits {
    let schema::Limits { timeout, fuel, memory, arguments, result, log, host_calls } = said;
    let mut limits = base;
    if let Some(Time(time)) = amount(problems, timeout.as_ref()) {
        limits.timeout = time;
    }
    for (said, limit) in [(fuel, &mut limits.fuel), (host_calls, &mut limits.host_calls)] {
        if let Some(Count(count)) = amount(problems, said.as_ref()) {
            *limit = count;
        }
    }
    let sizes = [
        (memory, &mut limits.memory),
        (arguments, &mut limits.arguments),
        (result, &mut limits.result),
        (log, &mut limits.log),
    ];
    for (said, limit) in sizes {
        if let Some(Size(bytes)) = amount(problems, said.as_ref()) {
            *limit = bytes;
        }
    }
    limits
}

/// Returns the limits that differ from the defaults, in words: name, value, default value.
pub fn unusual(limits: &Limits) -> Vec<[String; 3]> {
    let usual = Limits::default();
    // A new limit needs a row: without one, the page of `toolcell approve` leaves it out.
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

/// Parses a number with a unit. Returns `None` if it is absent or invalid.
pub(crate) fn amount<T: FromStr<Err = InvalidUnit>>(
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
