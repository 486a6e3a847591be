//! Durations, sizes and counts in the notation for people: `1.5s`, `64MiB`, `500M`.
//!
//! Limits in `toolcell.toml` and options of the command are parsed to [`Time`], [`Size`] and
//! [`Count`]. A value must be above zero; a time needs a unit and is at least a millisecond. A text
//! in another form is an [`InvalidUnit`], whose message lists the accepted forms. Each type prints
//! in a form that it can parse again. [`Size::rounded`] is for display only.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The error for a text in none of the accepted forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write {expected}: {forms}")]
pub struct InvalidUnit {
    /// The expected value, with an article.
    expected: &'static str,
    forms: &'static str,
}

impl InvalidUnit {
    /// Returns the expected value, with an article: `a size above zero`.
    #[must_use]
    pub fn expected(&self) -> &'static str {
        self.expected
    }
}

/// Splits before the first character that is not part of a number.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()))
}

/// Parses a positive whole number with a unit.
fn parse_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = split(text);
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.parse::<u64>().ok()?.checked_mul(*factor).filter(|value| *value > 0)
}

/// Formats with the largest unit that gives a whole number. The units are in ascending order.
fn shortest(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    // Zero is a multiple of every unit.
    let fits = units.iter().rfind(|(_, factor)| value > 0 && value.is_multiple_of(*factor));
    let (name, factor) = fits.unwrap_or(&("", 1));
    write!(f, "{}{name}", value / factor)
}

/// The shortest duration that is accepted. Shorter ones are not useful, and would be printed in a
/// unit that cannot be parsed.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest duration that is accepted, 136 years: added to any time of now, it gives a time.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// A duration of at least a millisecond: `500ms`, `2s`, `1.5s`, `1m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = InvalidUnit;

    fn from_str(text: &str) -> Result<Self, InvalidUnit> {
        let bad = InvalidUnit {
            expected: "a time with its unit, of at least 1ms",
            forms: "`500ms`, `2s`, `1.5s`, `1m`",
        };
        let (number, unit) = split(text);
        let factor = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            _ => return Err(bad),
        };
        let number: f64 = number.parse().map_err(|_| bad.clone())?;
        let time = Duration::try_from_secs_f64(number * factor).map_err(|_| bad.clone())?;
        if (SHORTEST..=LONGEST).contains(&time) { Ok(Self(time)) } else { Err(bad) }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

const SIZES: [(&str, u64); 5] =
    [("", 1), ("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A number of bytes: `64MiB`, `1GiB`, `512KiB`, `1000000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = InvalidUnit;

    fn from_str(text: &str) -> Result<Self, InvalidUnit> {
        let bad = InvalidUnit {
            expected: "a size in bytes, KiB, MiB or GiB, above zero",
            forms: "`512KiB`, `64MiB`, `1GiB`, or bytes as `1000000`",
        };
        parse_with_unit(text, &SIZES).map(Self).ok_or(bad)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shortest(f, self.0, &SIZES)
    }
}

impl Size {
    /// Formats the size for display, rounded to one decimal.
    pub fn rounded(self) -> String {
        let unit = SIZES.iter().rev().find(|(_, factor)| self.0 >= *factor && *factor > 1);
        unit.map_or_else(
            || format!("{} B", self.0),
            |(name, factor)| {
                let tenths = u128::from(self.0) * 10 / u128::from(*factor);
                format!("{}.{} {name}", tenths / 10, tenths % 10)
            },
        )
    }
}

const COUNTS: [(&str, u64); 4] = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

/// A count: `1000000`, `500M`, `10G`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = InvalidUnit;

    fn from_str(text: &str) -> Result<Self, InvalidUnit> {
        let bad = InvalidUnit {
            expected: "a whole number above zero",
            forms: "`1000000`, `500k`, `500M`, `10G`",
        };
        parse_with_unit(text, &COUNTS).map(Self).ok_or(bad)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shortest(f, self.0, &COUNTS)
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn printed_units_can_be_parsed() {
        for text in ["500ms", "2s", "1.5s", "60s", "1ms"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!("1m".parse::<Time>().unwrap().0, Duration::from_secs(60));
        for text in ["64MiB", "1GiB", "1000000B", "1KiB"] {
            let size = text.parse::<Size>().unwrap();
            assert_eq!(size.to_string().parse::<Size>().unwrap(), size);
        }
        assert_eq!("64mib".parse(), Ok(Size(64 << 20)));
        assert_eq!("10G".parse::<Count>().unwrap().to_string(), "10G");
        assert_eq!(Count(1_000_001).to_string(), "1000001");
        assert_eq!(Count(0).to_string(), "0");
        assert_eq!(Size((3 << 20) + (1 << 19)).rounded(), "3.5 MiB");
        assert_eq!(Size(1023).rounded(), "1023 B");
    }

    #[test]
    fn invalid_units_are_refused() {
        for bad in rows::<&str>("text/units", "invalid_times") {
            assert!(bad.parse::<Time>().is_err(), "{bad}");
        }
        for bad in rows::<&str>("text/units", "invalid_sizes") {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
        for bad in ["", "1T", "0", "-5", "1_000"] {
            assert!(bad.parse::<Count>().is_err(), "{bad}");
        }
    }
}
