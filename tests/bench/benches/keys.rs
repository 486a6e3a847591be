//! Tests that the time of an answer does not tell how near a wrong API key is to a right one:
//! Welch's t between two kinds of tries, as dudect does it (Reparaz, Balasch, Verbauwhede: "Dude,
//! is my code constant time?", 2017).
//!
//! `cargo bench --workspace --profile dev --bench keys`

use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use anyhow::Result;
use toolcell::tenant::{ApiKey, ApiKeys};
use toolcell_benches::timing::percentile;

/// Tries of each kind. Source: docs/threat-model.md, row 49.
const TRIES: usize = 200_000;
/// The |t| below which the kinds count as indistinguishable. Source: the same row.
const TARGET: f64 = 4.5;
/// Number of known keys of the smaller table.
const FEW: usize = 64;
/// Percent of the times that count: the slowest ones are noise of the machine.
const KEPT: f64 = 90.0;

fn main() -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{TRIES} tries of each kind, in turns; |t| below {TARGET} does not tell them apart\n"
    )?;
    writeln!(out, "  {:7} {:40} {:>7} {:>7} {:>7}", "keys", "", "ns", "ns", "|t|")?;
    for count in [FEW, 10_000] {
        let known = (0..count).map(|_| ApiKey::generate()).collect::<Result<Vec<_>, _>>()?;
        let none = ApiKeys::new()?;
        let keys = known.iter().try_fold(none, |keys, key| keys.with("tenant", key.digest()))?;
        // Each key is tried once, so that a peculiarity of one key does not count for its kind.
        let near = (0..TRIES)
            .map(|number| with_another_end(known[number % count].expose(), number))
            .collect::<Vec<_>>();
        let strange = || {
            (0..TRIES)
                .map(|_| Ok(ApiKey::generate()?.expose().to_owned()))
                .collect::<Result<Vec<_>>>()
        };
        let (far, other) = (strange()?, strange()?);
        let plain: Vec<_> = known.iter().take(FEW).map(ApiKey::expose).collect();
        let in_table: Find<'_> = &|key| keys.tenant_of(key).is_some();
        let as_text: Find<'_> = &|key| plain.iter().any(|known| alike(known, key));
        for (name, kinds, found) in [
            ("all but the end is right, and strange", [&near, &far], in_table),
            ("strange, and strange", [&far, &other], in_table),
            ("compared as text, for contrast", [&near, &far], as_text),
        ] {
            let ([one, another], t) = compared(kinds, found);
            let verdict = if t.abs() < TARGET { "alike" } else { "TOLD APART" };
            writeln!(
                out,
                "  {count:<7} {name:40} {one:7.0} {another:7.0} {:7.1}  {verdict}",
                t.abs()
            )?;
        }
    }
    Ok(())
}

type Find<'a> = &'a dyn Fn(&str) -> bool;

/// Replaces the last six characters of a key by a number.
fn with_another_end(key: &str, number: usize) -> String {
    format!("{}{number:06}", &key[..key.len() - 6])
}

/// Compares byte by byte and stops at the first difference.
fn alike(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && one.bytes().zip(other.bytes()).all(|(one, other)| black_box(one) == other)
}

/// Returns the mean time of each kind, and Welch's t.
fn compared(kinds: [&Vec<String>; 2], found: Find<'_>) -> ([f64; 2], f64) {
    let mut times = [Vec::with_capacity(TRIES), Vec::with_capacity(TRIES)];
    // A pseudo-random order, so that neither kind always comes second.
    let (mut chance, mut tried) = (1_u32, [0; 2]);
    while tried.iter().all(|tried| *tried < TRIES) {
        chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let kind = (chance >> 31) as usize;
        let key = &kinds[kind][tried[kind]];
        tried[kind] += 1;
        let began = Instant::now();
        assert!(!black_box(found(black_box(key))), "it is no key");
        times[kind].push(began.elapsed().as_nanos() as f64);
    }
    let bound = percentile(&mut times.concat(), KEPT);
    let [one, another] =
        times.map(|times| moments(times.into_iter().filter(|time| *time <= bound)));
    let t = (one.mean - another.mean)
        / (one.variance / one.count + another.variance / another.count).sqrt();
    ([one.mean, another.mean], t)
}

struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

fn moments(times: impl Iterator<Item = f64> + Clone) -> Moments {
    let count = times.clone().count() as f64;
    let mean = times.clone().sum::<f64>() / count;
    let variance = times.map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Moments { count, mean, variance }
}
