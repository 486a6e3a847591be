//! Times of a noisy machine: many rounds, interleaved, summed up by medians.

use std::time::{Duration, Instant};

/// One thing that is measured: it runs a number of calls and says how long each took.
pub struct Contender<'a> {
    /// Its name in the table.
    pub name: &'a str,
    /// Runs this many calls.
    pub round: Box<dyn FnMut(usize) -> Vec<Duration> + 'a>,
}

impl<'a> Contender<'a> {
    /// A contender that is timed call by call.
    pub fn new(name: &'a str, mut call: impl FnMut() + 'a) -> Self {
        let round = move |calls| {
            (0..calls)
                .map(|_| {
                    let start = Instant::now();
                    call();
                    start.elapsed()
                })
                .collect()
        };
        Self { name, round: Box::new(round) }
    }
}

/// What a contender's rounds came to, in microseconds.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// Median over rounds of each round's median.
    pub p50: f64,
    /// Median over rounds of each round's 99th percentile.
    pub p99: f64,
    /// Slowest and fastest round's median, as the spread.
    pub spread: (f64, f64),
}

/// Lets the contenders take turns, so that a change of the machine's pace hits all alike.
pub fn interleaved(contenders: &mut [Contender<'_>], rounds: usize, calls: usize) -> Vec<Summary> {
    let mut medians = vec![Vec::new(); contenders.len()];
    let mut tails = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (index, contender) in contenders.iter_mut().enumerate() {
            let mut times = micros((contender.round)(calls));
            // The first round warms up.
            if round > 0 {
                medians[index].push(percentile(&mut times, 50.0));
                tails[index].push(percentile(&mut times, 99.0));
            }
        }
    }
    let summaries = contenders.iter().zip(medians.iter_mut().zip(&mut tails));
    summaries
        .map(|(contender, (medians, tails))| Summary {
            name: contender.name.to_owned(),
            p50: percentile(medians, 50.0),
            p99: percentile(tails, 50.0),
            spread: (percentile(medians, 0.0), percentile(medians, 100.0)),
        })
        .collect()
}

/// Durations in microseconds.
#[must_use]
pub fn micros(times: Vec<Duration>) -> Vec<f64> {
    times.into_iter().map(|time| time.as_secs_f64() * 1e6).collect()
}

/// The value below which `percent` of the values lie.
#[must_use]
pub fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let index = (percent / 100.0 * last as f64).round() as usize;
    values.get(index).copied().unwrap_or(f64::NAN)
}
