//! A tool that needs one grant of each kind: a host, a secret for it, a directory, a variable and
//! keys. It uses them one after the other and stops at the first that is denied.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcell_guest::{Failure, http, kv, secrets, tool, tools};

/// Which hours the forecast covers.
#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Hours {
    /// From 6 to 20 o'clock.
    Day,
    /// All 24 hours.
    All,
}

/// How the answer is written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Style {
    /// Digits after the decimal point.
    #[schemars(range(min = 0, max = 3))]
    digits: u8,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The day as YYYY-MM-DD.
    #[schemars(length(equal = 10))]
    day: String,
    /// Which hours.
    #[serde(default = "all")]
    hours: Hours,
    /// How to write it.
    style: Option<Style>,
}

fn all() -> Hours {
    Hours::All
}

/// Tells the weather of a day in the city that the operator chose, and keeps the answer.
#[tool(
    title = "Forecast",
    idempotent,
    needs = [
        http("GET http://127.0.0.1:65535/forecast", "to ask for the forecast"),
        secret("forecast_token", "to sign in to the forecast service"),
        environment("CITY", "the city that the forecast is for"),
        filesystem("read /data", "to read the unit of the answer"),
        kv("write forecasts/*", "to keep the last forecasts"),
    ],
)]
fn forecast(args: Args) -> Result<String, Failure> {
    let Args { day, hours, style } = args;
    let city = std::env::var("CITY").map_err(|_| Failure::new("the variable CITY is not set"))?;
    let unit = std::fs::read_to_string("/data/unit.txt")
        .map_err(|error| Failure::new(format!("cannot read /data/unit.txt: {error}")))?;
    let token = secrets::get("forecast_token")?;
    let scope = if hours == Hours::All { "all" } else { "day" };
    let request =
        http::get("http://127.0.0.1:65535/forecast").query("city", &city).query("hours", scope);
    let response = request.query("day", &day).secret(&token).send()?;
    let answer = response.text();
    kv::set(&format!("forecasts/{day}"), answer.as_bytes())?;
    let digits = style.map_or(1, |style| style.digits);
    Ok(format!("{city}: {answer} {} ({digits})", unit.trim()))
}

tools![forecast];
