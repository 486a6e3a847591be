//! Decisions for complete, incomplete and invalid details.

use super::*;

fn details(name: &str, party_size: u32, date: &str, time: &str) -> Details {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Details {
        name: text(name),
        party_size: (party_size > 0).then_some(party_size),
        date: text(date),
        time: text(time),
    }
}

fn asked(details: Details) -> (String, Vec<Field>) {
    match decide(details) {
        Decision::Ask { question, fields, .. } => (question, fields),
        Decision::Book(booking) => panic!("booked: {booking:?}"),
        Decision::Refuse(reason) => panic!("refused: {reason}"),
    }
}

#[test]
fn complete_details_are_booked() {
    let Decision::Book(first) = decide(details(" Ada ", 2, "2026-03-03", "19:30")) else {
        panic!("not booked")
    };
    assert_eq!(
        (first.name.as_str(), first.weekday.as_str(), first.time.as_str()),
        ("Ada", "Tuesday", "19:30")
    );
    assert_eq!(
        decide(details("ada", 2, "2026-03-03", "19:30")),
        Decision::Book(Booking { name: "ada".to_owned(), ..first })
    );
}

#[test]
fn references_differ_with_the_details() {
    let one = |party| match decide(details("Ada", party, "2026-03-03", "18:00")) {
        Decision::Book(booking) => booking.reference,
        Decision::Ask { .. } | Decision::Refuse(_) => panic!("not booked"),
    };
    assert_ne!(one(2), one(3));
    assert!(one(2).len() == 8 && one(2).starts_with("T-"));
}

#[test]
fn missing_details_are_asked_for_together() {
    let (question, fields) = asked(Details::default());
    assert_eq!(
        question,
        "To book the table, please say: how many people, which day, what time, name for the table."
    );
    assert_eq!(
        fields.iter().map(|field| field.field).collect::<Vec<_>>(),
        ["party_size", "date", "time", "name"]
    );
    let (_, fields) = asked(details("Ada", 6, "2026-03-06", ""));
    assert_eq!(fields[0].choices, ["17:00", "17:30", "18:00", "18:30", "20:30", "21:00", "21:30"]);
}

#[test]
fn fully_booked_time_offers_nearest_free_times() {
    let (question, fields) = asked(details("Ada", 4, "2026-03-06", "19:30"));
    assert_eq!(
        question,
        "On Friday, 2026-03-06, there is no table for 4 at 19:30. Which time instead?"
    );
    assert_eq!(fields[0].choices, ["18:00", "18:30", "20:30", "21:00"]);
}

#[test]
fn closed_days_and_odd_times_are_asked_about() {
    let (question, fields) = asked(details("Ada", 2, "2026-03-02", "19:00"));
    assert!(question.starts_with("The house is closed on Mondays"));
    assert_eq!(fields[0].choices, ["2026-03-03", "2026-03-04", "2026-03-05"]);
    let (question, fields) = asked(details("Ada", 2, "2026-03-03", "7:30"));
    assert!(question.starts_with("Is 07:30 meant to be 19:30?"));
    assert!(fields[0].choices.contains(&"19:30".to_owned()));
    let (question, _) = asked(details("Ada", 2, "2026-03-03", "19:10"));
    assert!(question.starts_with("There are no tables at 19:10"));
}

#[test]
fn large_parties_are_refused_at_once() {
    assert!(matches!(decide(details("", 9, "", "")), Decision::Refuse(_)));
}

#[test]
fn every_invalid_detail_is_found() {
    let wrong = details(" ", 2, "2026-02-30", "25:00");
    let found = problems(&wrong);
    assert_eq!(found.len(), 3);
    assert!(found[1].contains("2026-02-30"));
    assert_eq!(without_problems(wrong), details("", 2, "", ""));
    assert_eq!(problems(&Details { party_size: Some(0), ..Details::default() }).len(), 1);
}
