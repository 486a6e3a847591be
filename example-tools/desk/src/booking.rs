//! Decides the next step of a reservation from the details that are known.
//!
//! In: the details so far, from the call or from a person's answer. Out: a [`Decision`].
//! Invariants: pure, so the same details always give the same decision and the same reference; a
//! decision to ask names at least one field.
//! Not here: questions to the person (`lib`), opening hours and free seats (`house`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calendar::{Day, Time, WEEKDAYS};
use crate::house::{self, LARGEST_TABLE, OPENING_HOURS};

/// What is known of a reservation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Details {
    /// The name the table is booked under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub(crate) name: Option<String>,
    /// How many people come, children included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 40))]
    pub(crate) party_size: Option<u32>,
    /// The day as YYYY-MM-DD. Work out relative dates such as "tomorrow" first: the tool has no
    /// clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2}$"))]
    pub(crate) date: Option<String>,
    /// The time as HH:MM on a clock of 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\d{1,2}:\d{2}$"))]
    pub(crate) time: Option<String>,
}

/// The next step of a reservation.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// Ask a person for these fields.
    Ask { question: String, fields: Vec<Field>, details: Details },
    /// The booking: all details are there and a table is free.
    Book(Booking),
    /// The reason why this restaurant cannot take the reservation, whatever the answers.
    Refuse(String),
}

/// A field to ask for.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Field {
    pub(crate) field: &'static str,
    pub(crate) label: &'static str,
    /// The values to choose from. Empty: any value of the right form.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) choices: Vec<String>,
}

/// A table that is booked.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Booking {
    /// To be given to the guest. The same details always have the same reference.
    pub(crate) reference: String,
    /// The name the table is booked under.
    pub(crate) name: String,
    /// How many people come.
    pub(crate) party_size: u32,
    /// The day as YYYY-MM-DD.
    pub(crate) date: String,
    /// The day of the week, in English.
    pub(crate) weekday: String,
    /// The time as HH:MM.
    pub(crate) time: String,
}

/// Number of days that are offered if the restaurant is closed.
const DAYS_OFFERED: usize = 3;
/// Number of times that are offered if the wanted one is taken.
const TIMES_OFFERED: usize = 4;

/// Returns the details that are invalid regardless of the restaurant, one message each.
pub(crate) fn problems(details: &Details) -> Vec<String> {
    let mut found = Vec::new();
    if details.name.as_deref().is_some_and(|name| name.trim().is_empty()) {
        found.push("name: is blank".to_owned());
    }
    if let Some(date) = details.date.as_deref().filter(|date| Day::parse(date).is_none()) {
        found.push(format!("date: there is no day `{date}`; the form is YYYY-MM-DD"));
    }
    if let Some(time) = details.time.as_deref().filter(|time| Time::parse(time).is_none()) {
        found.push(format!(
            "time: there is no time `{time}`; the form is HH:MM, from 00:00 to 23:59"
        ));
    }
    if details.party_size == Some(0) {
        found.push("party_size: is 0; at least one person must come".to_owned());
    }
    found
}

/// Drops the invalid fields, so that they are asked for again.
pub(crate) fn without_problems(details: Details) -> Details {
    Details {
        name: details.name.filter(|name| !name.trim().is_empty()),
        party_size: details.party_size.filter(|&size| size > 0),
        date: details.date.filter(|date| Day::parse(date).is_some()),
        time: details.time.filter(|time| Time::parse(time).is_some()),
    }
}

/// Decides the next step. The details should have no [`problems`]; an invalid field counts as
/// missing.
pub(crate) fn decide(details: Details) -> Decision {
    let party = details.party_size.filter(|&size| size > 0);
    if party.is_some_and(|size| size > LARGEST_TABLE) {
        return Decision::Refuse(format!(
            "no table takes more than {LARGEST_TABLE} people: larger parties book by phone"
        ));
    }
    let day = details.date.as_deref().and_then(Day::parse);
    if let Some(day) = day.filter(|&day| !house::is_open(day)) {
        let choices = house::open_days(day, DAYS_OFFERED).iter().map(Day::to_string).collect();
        let question = format!(
            "The house is closed on {}s ({OPENING_HOURS}). Which other day?",
            WEEKDAYS[day.weekday()]
        );
        return ask(question, vec![date(choices)], Details { date: None, ..details });
    }
    let wanted = details.time.as_deref().and_then(Time::parse);
    let name = details.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let (Some(name), Some(party), Some(day), Some(wanted)) = (name, party, day, wanted) else {
        return ask_for_missing(details, day, wanted);
    };
    let free = house::free_times(day, party);
    if free.contains(&wanted) {
        return Decision::Book(booking(name, party, day, wanted));
    }
    let question = unavailable(day, wanted, party);
    let evening = Time(wanted.0 + 12 * 60);
    let around = if free.contains(&evening) { evening } else { wanted };
    let choices = nearest(&free, around).iter().map(Time::to_string).collect();
    ask(question, vec![time(choices)], Details { time: None, ..details })
}

fn unavailable(day: Day, wanted: Time, party: u32) -> String {
    let evening = Time(wanted.0 + 12 * 60);
    if house::times().any(|time| time == evening) {
        return format!("Is {wanted} meant to be {evening}? The house opens in the evening only.");
    }
    if !house::times().any(|time| time == wanted) {
        return format!("There are no tables at {wanted} ({OPENING_HOURS}). Which time instead?");
    }
    let weekday = WEEKDAYS[day.weekday()];
    format!("On {weekday}, {day}, there is no table for {party} at {wanted}. Which time instead?")
}

fn ask_for_missing(details: Details, day: Option<Day>, wanted: Option<Time>) -> Decision {
    let mut fields = Vec::new();
    if details.party_size.is_none_or(|size| size == 0) {
        fields.push(Field { field: "party_size", label: "How many people", choices: Vec::new() });
    }
    if day.is_none() {
        fields.push(date(Vec::new()));
    }
    if wanted.is_none() {
        let known = day.zip(details.party_size).map(|(day, party)| house::free_times(day, party));
        let free = known.unwrap_or_else(|| house::times().collect());
        fields.push(time(free.iter().map(Time::to_string).collect()));
    }
    if details.name.as_deref().is_none_or(|name| name.trim().is_empty()) {
        fields.push(Field { field: "name", label: "Name for the table", choices: Vec::new() });
    }
    let asked: Vec<&str> = fields.iter().map(|field| field.label).collect();
    ask(
        format!("To book the table, please say: {}.", asked.join(", ").to_lowercase()),
        fields,
        details,
    )
}

fn ask(question: String, fields: Vec<Field>, details: Details) -> Decision {
    Decision::Ask { question, fields, details }
}

fn date(choices: Vec<String>) -> Field {
    Field { field: "date", label: "Which day", choices }
}

fn time(choices: Vec<String>) -> Field {
    Field { field: "time", label: "What time", choices }
}

/// Returns the free times closest to the wanted one, in chronological order.
fn nearest(free: &[Time], wanted: Time) -> Vec<Time> {
    let mut near = free.to_vec();
    near.sort_by_key(|time| (time.0.abs_diff(wanted.0), *time));
    near.truncate(TIMES_OFFERED);
    near.sort();
    near
}

fn booking(name: &str, party_size: u32, day: Day, time: Time) -> Booking {
    Booking {
        reference: reference(&format!("{day}|{time}|{party_size}|{}", name.to_lowercase())),
        name: name.to_owned(),
        party_size,
        date: day.to_string(),
        weekday: WEEKDAYS[day.weekday()].to_owned(),
        time: time.to_string(),
    }
}

/// Returns a reference of six characters that are hard to confuse when spoken: FNV-1a in base 32
/// without I, L, O and U.
fn reference(details: &str) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let hash = details.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let characters = (0..6).map(|index| char::from(ALPHABET[(hash >> (index * 5) & 31) as usize]));
    std::iter::once('T').chain(std::iter::once('-')).chain(characters).collect()
}

#[cfg(test)]
mod tests;
