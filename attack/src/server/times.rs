//! The time that a refusal takes: it says no more than the refusal.
//!
//! Requests of each kind take turns, so that a busy machine slows them alike, and their medians are
//! compared.

use std::time::{Duration, Instant};

use super::{HIDDEN, Server};
use crate::dice::Dice;
use crate::tally::{Fault, Tally};

/// Requests of each kind.
const TURNS: usize = 150;
/// By how much the medians of two kinds may differ: generous, because the differences of a real
/// leak grow with what is looked for, and those of a machine do not.
const RATIO: f64 = 1.5;
/// How often a difference must be measured before it counts.
const TIMES: usize = 3;

/// A key, the line of a request, and its body.
type Request<'a> = (&'a str, String, String);

impl Server {
    /// Compares the times of refusals that must not be told apart.
    pub(super) fn compare_times(&self, tally: &mut Tally) {
        let mut dice = Dice::of(self.seed, "times", 0);
        let (missing, unknown) = (dice.letters(HIDDEN.len()).to_lowercase(), "0".repeat(64));
        let kept = super::json_of(&self.sent(&self.acme, "POST /v1/artifacts", "", &missing));
        let id = kept["id"].as_str().unwrap_or_default().to_owned();
        let call = |name: &str| {
            (&*self.globex, "POST /v1/calls".to_owned(), format!(r#"{{"name": "{name}"}}"#))
        };
        let artifact = |id: &str| (&*self.globex, format!("GET /v1/artifacts/{id}"), String::new());
        let made_up = format!("tck_{}", dice.letters(43));
        for (what, requests) in [
            ("a hidden tool and a missing one", [call(HIDDEN), call(&missing)]),
            ("an artifact of another tenant and none", [artifact(&id), artifact(&unknown)]),
            ("a revoked key and an unknown one", [listing(&self.revoked), listing(&made_up)]),
        ] {
            let ratios: Vec<f64> = (0..TIMES)
                .map(|_| self.ratio(&requests))
                .take_while(|ratio| *ratio > RATIO)
                .collect();
            if ratios.len() == TIMES {
                tally.failed(
                    Fault::Slow,
                    format!("a difference of times: {what}"),
                    format!("{ratios:?}"),
                );
            } else {
                tally.survived();
            }
        }
        self.sent(&self.acme, &format!("DELETE /v1/artifacts/{id}"), "", "");
    }

    /// How many times longer the slower of two requests takes, by their medians.
    fn ratio(&self, requests: &[Request<'_>; 2]) -> f64 {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            for ((key, line, body), times) in requests.iter().zip(&mut times) {
                let began = Instant::now();
                self.sent(key, line, "", body);
                times.push(began.elapsed());
            }
        }
        let [one, other] = times.map(median);
        (one / other).max(other / one)
    }
}

fn listing(key: &str) -> Request<'_> {
    (key, "GET /v1/tools".to_owned(), String::new())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}
