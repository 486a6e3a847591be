//! Two tools: one asks a person for missing details, the other ends the conversation.
//!
//! `booking` decides the next step of a reservation, from `house` and `calendar`; `plan` sorts
//! steps. This file translates their results into outcomes: a question, a value, a halt.

mod booking;
mod calendar;
mod house;
mod plan;

use booking::{Booking, Decision, Details};
use plan::Step;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcell_guest::{Context, Failure, Halt, Outcome, Output, Question, json, tool, tools};

/// What a person says when asked. Only what was asked for is needed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Answer {
    /// True to book no table at all.
    #[serde(default)]
    cancel: bool,
    /// The name the table is booked under.
    name: Option<String>,
    /// How many people come.
    party_size: Option<u32>,
    /// The day as YYYY-MM-DD.
    date: Option<String>,
    /// The time as HH:MM on a clock of 24 hours.
    time: Option<String>,
}

impl Answer {
    /// Merges the answer over the known details: the answer wins where it has a value.
    fn over(self, known: Details) -> Details {
        Details {
            name: self.name.or(known.name),
            party_size: self.party_size.or(known.party_size),
            date: self.date.or(known.date),
            time: self.time.or(known.time),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// False when the person gave up.
    booked: bool,
    /// What was booked.
    #[serde(skip_serializing_if = "Option::is_none")]
    booking: Option<Booking>,
}

/// Books a table at the restaurant (Tuesday to Sunday, 17:00 to 21:30, parties of up to 8). Give
/// the details you know and do not guess the others: a person is asked for what is missing,
/// ambiguous or taken.
#[tool(
    title = "Book a table",
    idempotent,
    output = Reply,
    validate = booking::problems,
    max_execution = "1s",
    attributes = { "category": "desk" }
)]
fn book_table(args: Details, context: &Context) -> Result<Outcome, Failure> {
    let mut details = args;
    let mut wrong = Vec::new();
    if let Some(answer) = context.answer::<Answer>() {
        let answer = answer?;
        if answer.cancel {
            let reply = Reply { booked: false, booking: None };
            return Ok(Output::new(reply).message("No table was booked.").into());
        }
        if let Some(known) = context.state() {
            details = known?;
        }
        // The answer of a person is not validated yet: invalid fields are asked for again.
        details = answer.over(details);
        wrong = booking::problems(&details);
        details = booking::without_problems(details);
    }
    Ok(match booking::decide(details) {
        Decision::Book(booking) => booked(booking).into(),
        Decision::Refuse(reason) => Failure::new(reason)
            .data(json!({ "largest_table": house::LARGEST_TABLE }))
            .retryable(false)
            .into(),
        Decision::Ask { question, fields, details } => {
            wrong.push(question);
            Question::new(wrong.join(". "))
                .options(fields)
                .answer_schema::<Answer>()
                .state(details)
                .into()
        }
    })
}

fn booked(booking: Booking) -> Output {
    let Booking { reference, name, party_size, date, weekday, time } = &booking;
    let message = format!(
        "Booked {reference}: {weekday}, {date} at {time}, {party_size} people, under {name}."
    );
    Output::new(Reply { booked: true, booking: Some(booking) }).message(message)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanArgs {
    /// What the plan achieves, in one sentence.
    #[schemars(length(min = 1, max = 500))]
    goal: String,
    /// The steps, in any order.
    #[schemars(length(min = 1, max = 100))]
    steps: Vec<Step>,
}

fn check_plan(args: &PlanArgs) -> Vec<String> {
    plan::problems(&args.steps)
}

/// Hands in the finished plan and ends the conversation. The steps are brought into an order in
/// which they can be carried out; steps that wait for each other in a circle are an error that
/// names the circle. Call it once, when the plan is done.
#[tool(
    title = "Submit a plan",
    read_only,
    idempotent,
    validate = check_plan,
    max_execution = "1s",
    attributes = { "category": "desk" }
)]
fn submit_plan(args: PlanArgs) -> Result<Halt, Failure> {
    match plan::order(&args.goal, &args.steps) {
        Ok(plan) => Ok(Halt::new("plan_submitted", plan)),
        Err(cycle) => {
            Err(Failure::new(cycle.explain()).data(json!({ "cycle": cycle.0 })).retryable(false))
        }
    }
}

tools![book_table, submit_plan];
