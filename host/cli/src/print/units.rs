//! Numbers and dates in the form that a person writes, for options and messages.
//!
//! The command line uses [`Date`] for `--now` (RFC 3339, or seconds since 1970), [`number`] for a
//! seed, and [`whole_number_parser`] for whole numbers in bounds; each error says which form is
//! expected. Messages use [`counted`] for "1 tool" and "2 tools". Times, sizes and counts (`2s`,
//! `64MiB`, `500M`) are types of `toolcell-config` and are re-exported.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

pub(crate) use toolcell_config::text::units::{Count, Size, Time};

/// Returns a number of things in words: `1 tool`, `2 tools`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// Parses a whole number, for `--seed`.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

/// Returns a parser of whole numbers in these bounds.
pub(crate) fn whole_number_parser(
    bounds: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone {
    move |text| {
        let wanted = || format!("write a whole number from {} to {}", bounds.start(), bounds.end());
        text.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(wanted)
    }
}

/// A date: RFC 3339, or whole seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) struct Date(pub(crate) SystemTime);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339(self.0).fmt(f)
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // RFC 3339 has no form for dates after the year 9999. Source: RFC 3339, section 1.
        let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_800);
        let seconds =
            || SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(text.parse().ok()?));
        let date = humantime::parse_rfc3339(text).ok().or_else(seconds).filter(|date| *date < last);
        let wanted = "write a date from 1970 to 9999, such as `2026-01-31T12:00:00Z`, or whole seconds since 1970";
        date.map(Self).ok_or_else(|| wanted.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_uses_singular_for_one() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "tool")), ["0 tools", "1 tool", "2 tools"]);
    }

    #[test]
    fn invalid_date_is_rejected() {
        for bad in [
            "",
            "-1",
            "1969-12-31T23:59:59Z",
            "253402300800",
            "18446744073709551615",
            "10000-01-01T00:00:00Z",
        ] {
            assert!(bad.parse::<Date>().is_err(), "{bad}");
        }
    }
}
