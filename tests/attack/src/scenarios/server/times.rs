//! Compares the times of refusals: they must not tell more than the refusals do.
//!
//! Requests of the two kinds alternate, so that a busy machine slows both alike; their medians are
//! compared.

use std::time::{Duration, Instant};

use super::{HIDDEN, Server};
use crate::rng::SeededRng;
use crate::tally::{Fault, Tally};

/// Requests of each kind.
const TURNS: usize = 150;
/// Factor by which the medians of two kinds may differ. Generous, because the difference of a real
/// leak grows with the data that is searched, and noise of the machine does not.
const RATIO: f64 = 1.5;
/// Consecutive measurements that must show a difference before it counts.
const TIMES: usize = 3;

/// A key, a request line and a body.
type Request<'a> = (&'a str, String, String);

impl Server {
    /// Compares the times of refusals that must look alike.
    pub(super) fn compare_times(&self, tally: &mut Tally) {
        let mut dice = SeededRng::of(self.seed, "times", 0);
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
            let ratios = (0..TIMES).map(|_| self.ratio(&requests));
            let ratios: Vec<f64> = ratios.take_while(|ratio| *ratio > RATIO).collect();
            tally.record_result(if ratios.len() == TIMES {
                let what = format!("a difference of times: {what}");
                Err((Fault::Slow, what, format!("{ratios:?}")))
            } else {
                Ok(())
            });
        }
        self.sent(&self.acme, &format!("DELETE /v1/artifacts/{id}"), "", "");
    }

    /// Returns the ratio of the two requests' medians, slower over faster.
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
