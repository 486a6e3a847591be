//! Timing on a noisy machine: many interleaved rounds, summarized by medians.

use std::time::{Duration, Instant};

/// One measured candidate: it runs a number of calls and returns the time of each.
pub struct Contender<'a> {
    /// The name in the table.
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

/// The times of a contender over all rounds, in microseconds.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The contender's name.
    pub name: String,
    /// Median over rounds of each round's median.
    pub p50: f64,
    /// Median over rounds of each round's 99th percentile.
    pub p99: f64,
    /// Lowest and highest median of a round.
    pub spread: (f64, f64),
}

/// Runs the contenders alternately, so that a change of the machine's speed affects all alike.
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

/// The times of a contender over many short rounds, and its difference to the one before it.
#[derive(Debug, Clone)]
pub struct Step {
    /// The contender's name.
    pub name: String,
    /// Median time, in microseconds.
    pub p50: f64,
    /// Median, over rounds, of the contender's time minus that of the one before it in the same
    /// round, in microseconds.
    pub more: f64,
    /// The 95 % confidence interval of that median (from order statistics, without an assumption on
    /// the noise).
    pub interval: (f64, f64),
}

/// Runs the contenders alternately, one batch at a time and in another order each round, and
/// compares them within each round: for differences that are smaller than the variation of the
/// machine's speed.
pub fn steps(contenders: &mut [Contender<'_>], rounds: usize) -> Vec<Step> {
    let count = contenders.len();
    let mut times = vec![Vec::with_capacity(rounds); count];
    // Warms up for a tenth of the rounds.
    for round in 0..rounds + rounds / 10 {
        for turn in 0..count {
            let index = if round % 2 == 0 {
                (round / 2 + turn) % count
            } else {
                (round / 2 + count - turn) % count
            };
            let taken = micros((contenders[index].round)(1));
            if round >= rounds / 10 {
                times[index].extend(taken);
            }
        }
    }
    let half_width = 98.0 / (rounds as f64).sqrt();
    let of = |index: usize, contender: &Contender<'_>| {
        let before = index.checked_sub(1).map(|before| &times[before]);
        let mut more: Vec<f64> = before
            .map(|before| {
                times[index].iter().zip(before).map(|(time, before)| time - before).collect()
            })
            .unwrap_or_default();
        let interval =
            (percentile(&mut more, 50.0 - half_width), percentile(&mut more, 50.0 + half_width));
        Step {
            name: contender.name.to_owned(),
            p50: percentile(&mut times[index].clone(), 50.0),
            more: percentile(&mut more, 50.0),
            interval,
        }
    };
    contenders.iter().enumerate().map(|(index, contender)| of(index, contender)).collect()
}

/// Converts durations to microseconds.
#[must_use]
pub fn micros(times: Vec<Duration>) -> Vec<f64> {
    times.into_iter().map(|time| time.as_secs_f64() * 1e6).collect()
}

/// Returns the value below which `percent` of the values lie; NaN without values. Sorts the values.
#[must_use]
pub fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let index = (percent / 100.0 * last as f64).round() as usize;
    values.get(index).copied().unwrap_or(f64::NAN)
}
