//! The restaurant: its opening hours and free seats.
//!
//! Reservations are a fixed table here, so that the same call always has the same answer. A real
//! tool would keep them in key-value storage or behind HTTP; nothing else in this crate would
//! change.

use crate::calendar::{Day, Time};

/// Seats of the restaurant.
const SEATS: u32 = 40;
/// The largest party that one table takes.
pub(crate) const LARGEST_TABLE: u32 = 8;
/// First and last time of arrival, and the minutes between two of them.
const FIRST: Time = Time(17 * 60);
const LAST: Time = Time(21 * 60 + 30);
const STEP: u32 = 30;
/// The opening hours in words.
pub(crate) const OPENING_HOURS: &str =
    "Tuesday to Sunday, tables from 17:00 to 21:30 on the half hour";

const MONDAY: usize = 0;
const FRIDAY: usize = 4;
const SATURDAY: usize = 5;

/// Returns true if the restaurant opens on that day.
pub(crate) fn is_open(day: Day) -> bool {
    day.weekday() != MONDAY
}

/// All times of arrival.
pub(crate) fn times() -> impl Iterator<Item = Time> {
    (FIRST.0..=LAST.0).step_by(STEP as usize).map(Time)
}

/// The times at which a table is free for the party.
pub(crate) fn free_times(day: Day, party: u32) -> Vec<Time> {
    times().filter(|&time| is_open(day) && free_seats(day, time) >= party).collect()
}

/// The first `count` open days, beginning with `from`.
pub(crate) fn open_days(from: Day, count: usize) -> Vec<Day> {
    std::iter::successors(Some(from), |day| day.next())
        .filter(|&day| is_open(day))
        .take(count)
        .collect()
}

/// Seats that are free. From 19:00 to 20:00 the restaurant is full on Fridays and Saturdays and has
/// one small table left on other days.
fn free_seats(day: Day, time: Time) -> u32 {
    let busy = (Time(19 * 60)..=Time(20 * 60)).contains(&time);
    match (day.weekday(), busy) {
        (FRIDAY | SATURDAY, true) => 0,
        (_, true) => 4,
        (FRIDAY | SATURDAY, false) => 12,
        (_, false) => SEATS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(day: &str, party: u32) -> Vec<String> {
        free_times(Day::parse(day).unwrap(), party).iter().map(Time::to_string).collect()
    }

    #[test]
    fn busy_hours_fill_first() {
        assert_eq!(free("2026-03-03", 2).len(), 10);
        assert_eq!(
            free("2026-03-03", 5),
            ["17:00", "17:30", "18:00", "18:30", "20:30", "21:00", "21:30"]
        );
        assert_eq!(
            free("2026-03-06", 2),
            ["17:00", "17:30", "18:00", "18:30", "20:30", "21:00", "21:30"]
        );
        assert!(free("2026-03-02", 2).is_empty());
    }

    #[test]
    fn mondays_are_skipped() {
        let days = open_days(Day::parse("2026-03-01").unwrap(), 2);
        assert_eq!(
            days.iter().map(Day::to_string).collect::<Vec<_>>(),
            ["2026-03-01", "2026-03-03"]
        );
    }
}
