//! Parses and formats days and times of day.
//!
//! Invariants: a [`Day`] is a day that exists, from 1583 (the first full Gregorian year) to 9999.
//! Dates are absolute: a cell has no clock unless it is granted one, so there is no "today".

use std::fmt;

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day {
    year: u32,
    month: u32,
    day: u32,
}

/// Names of the days, indexed by [`Day::weekday`].
pub(crate) const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl Day {
    /// Parses `YYYY-MM-DD`. Returns `None` if there is no such day.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split('-');
        let (year, month, day) =
            (digits(fields.next()?, 4)?, digits(fields.next()?, 2)?, digits(fields.next()?, 2)?);
        let exists =
            year >= 1583 && (1..=12).contains(&month) && (1..=length(year, month)).contains(&day);
        (exists && fields.next().is_none()).then_some(Self { year, month, day })
    }

    /// The day of the week: 0 is Monday.
    pub(crate) fn weekday(self) -> usize {
        // Zeller's congruence, which counts January and February as months of the year before.
        let (year, month) =
            if self.month < 3 { (self.year - 1, self.month + 12) } else { (self.year, self.month) };
        let saturday_is_0 =
            self.day + 13 * (month + 1) / 5 + year + year / 4 - year / 100 + year / 400;
        (saturday_is_0 as usize + 5) % 7
    }

    /// The following day, or `None` after the last one.
    pub(crate) fn next(self) -> Option<Self> {
        let Self { year, month, day } = self;
        let next = if day < length(year, month) {
            Self { year, month, day: day + 1 }
        } else if month < 12 {
            Self { year, month: month + 1, day: 1 }
        } else {
            Self { year: year + 1, month: 1, day: 1 }
        };
        (next.year <= 9999).then_some(next)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// A time of day, in minutes since midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) u32);

impl Time {
    /// Parses `HH:MM` or `H:MM` on a 24-hour clock. Returns `None` if there is no such time.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (hours, minutes) = text.split_once(':')?;
        let hours = if hours.len() == 1 { digits(hours, 1)? } else { digits(hours, 2)? };
        let minutes = digits(minutes, 2)?;
        (hours < 24 && minutes < 60).then_some(Self(hours * 60 + minutes))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn length(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_existing_dates_are_parsed() {
        for text in ["2026-01-31", "2024-02-29", "2000-02-29"] {
            assert_eq!(Day::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-1-1",
            "01/02/2026",
            "2026-01-01-01",
            "+026-01-01",
            "",
        ] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }

    #[test]
    fn weekdays_are_right() {
        for (text, weekday) in [
            ("1970-01-01", "Thursday"),
            ("2000-01-01", "Saturday"),
            ("2024-02-29", "Thursday"),
            ("2026-03-02", "Monday"),
            ("2026-12-31", "Thursday"),
        ] {
            assert_eq!(WEEKDAYS[Day::parse(text).unwrap().weekday()], weekday, "{text}");
        }
    }

    #[test]
    fn next_day_crosses_months_and_years() {
        let after = |text| Day::parse(text).unwrap().next().map(|day| day.to_string());
        assert_eq!(after("2026-02-28").as_deref(), Some("2026-03-01"));
        assert_eq!(after("2026-12-31").as_deref(), Some("2027-01-01"));
        assert_eq!(after("9999-12-31"), None);
    }

    #[test]
    fn hours_are_parsed_with_one_or_two_digits() {
        assert_eq!(Time::parse("7:05").unwrap().to_string(), "07:05");
        assert_eq!(Time::parse("23:59").unwrap().0, 1439);
        for text in ["24:00", "12:60", "7pm", "7", "07:5", ":30", "-1:00"] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
