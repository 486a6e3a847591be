//! The parent process of a campaign: starts a child for each scenario, notices when one dies or
//! hangs, and continues after that case.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;

use crate::report::{Report, Row};
use crate::scenarios::child::Line;
use crate::scenarios::options::{Campaign, Name};
use crate::scenarios::{mixed, slots};
use crate::tally::{Fault, Finding};

/// A child that writes no line for this long counts as hung.
const SILENCE: Duration = Duration::from_secs(120);
/// Processes that a scenario gets at most; after that many deaths it is given up.
const MAX_CHILDREN: usize = 20;
/// Makes the C library's allocator return free memory: one arena, and allocations above four pages
/// (16 KiB) in mappings of their own. Growth then shows what is kept, not how the allocator spreads
/// memory over threads and time.
const ALLOCATOR: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_MMAP_THRESHOLD_", "16384"),
    ("MALLOC_TRIM_THRESHOLD_", "16384"),
];
/// Bytes that are kept of the end of a dead child's standard error.
const WORDS: usize = 2_000;

/// Runs all chosen scenarios, one after the other.
///
/// # Errors
/// Fails if no process can be started or no directory can be made.
pub fn campaign(options: &Campaign, seed: u64) -> std::io::Result<Report> {
    let began = Instant::now();
    let is_chosen = |name: &&Name| options.only.is_none_or(|only| only == **name);
    let theatres: Vec<_> = Name::value_variants().iter().filter(is_chosen).collect();
    let whole = Duration::from_secs(options.seconds);
    let mut rows = Vec::new();
    let mut played = Duration::ZERO;
    for (index, name) in theatres.iter().enumerate() {
        // Time that one scenario leaves goes to the rest. Time for setting up does not count.
        let share = whole.saturating_sub(played) / (theatres.len() - index) as u32;
        let opened = Instant::now();
        rows.push(ScenarioRun { options, seed, name: **name }.run(share)?);
        played += opened.elapsed().min(share);
    }
    if std::io::stderr().is_terminal() {
        show("");
    }
    Ok(Report::new(seed, began.elapsed().as_secs_f64(), rows))
}

/// One scenario of a campaign.
struct ScenarioRun<'a> {
    options: &'a Campaign,
    seed: u64,
    name: Name,
}

/// The end of a child process.
struct ChildEnd {
    row: Option<Row>,
    is_over: bool,
    /// The last case that it began: position and number.
    last: Option<(u64, u64)>,
    is_hung: bool,
    status: ExitStatus,
    words: String,
}

impl ScenarioRun<'_> {
    fn run(&self, share: Duration) -> std::io::Result<Row> {
        let (began, mut from) = (Instant::now(), 0);
        let mut whole = Row::none(self.name.text());
        for _ in 0..MAX_CHILDREN {
            let ended = self.child(share.saturating_sub(began.elapsed()), from)?;
            whole.add(ended.row.unwrap_or_else(|| Row::none(self.name.text())));
            if ended.is_over {
                break;
            }
            let (position, case) = ended.last.unwrap_or((from, 0));
            whole.tried += 1;
            whole.deaths += 1;
            let what = match ended.last {
                Some(_) => ended.status.to_string(),
                None => "before the first case".into(),
            };
            let (theatre, detail) = (self.name.text(), ended.words);
            let fault = if ended.is_hung { Fault::Hang } else { Fault::Death };
            whole.findings.push(Finding { theatre, fault, what, count: 1, case, detail });
            from = position + 1;
            if ended.last.is_none() || self.options.case.is_some() || began.elapsed() >= share {
                break;
            }
        }
        Ok(whole)
    }

    /// Starts one child process and reads it to its end.
    fn child(&self, time: Duration, from: u64) -> std::io::Result<ChildEnd> {
        let temp = tempfile::tempdir()?;
        let words = tempfile::NamedTempFile::new()?;
        let mut child = Command::new(std::env::current_exe()?);
        // At least this many cases, however long they take: otherwise a scenario that is slow to
        // set up would be left out.
        let (calls, cases) = counts(self.name);
        let asked = calls.map_or(1, |calls| self.options.calls.div_ceil(calls).max(1));
        let least = if self.options.whole { asked.max(cases) } else { asked };
        let (name, seed) = (self.name.text(), self.seed);
        let seconds = time.as_secs_f64().max(0.001);
        let arguments = format!(
            "perform {name} --seed {seed} --from {from} --seconds {seconds} --least {least}"
        );
        child.args(arguments.split(' '));
        if let Some(case) = self.options.case {
            child.args(["--case", &case.to_string()]);
        }
        child.env("TMPDIR", temp.path()).envs(ALLOCATOR);
        let child = child.stdin(Stdio::null()).stdout(Stdio::piped());
        self.read_output(child.stderr(File::create(words.path())?).spawn()?, words.path())
    }

    fn read_output(&self, mut child: Child, words: &std::path::Path) -> std::io::Result<ChildEnd> {
        let output = child.stdout.take().expect("it was asked for");
        let (send, lines) = mpsc::channel();
        let reader = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let (mut row, mut is_over, mut last, mut hung) = (None, false, None, false);
        let mut shown = Instant::now();
        loop {
            match lines.recv_timeout(SILENCE) {
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(Line::Case(position, case)) => {
                        last = Some((position, case));
                        let is_due = shown.elapsed() > Duration::from_millis(200);
                        if is_due && std::io::stderr().is_terminal() {
                            shown = Instant::now();
                            show(&format!("{}: case {case}", self.name.text()));
                        }
                    }
                    Ok(Line::SoFar(so_far)) => row = Some(so_far),
                    Ok(Line::Over(whole)) => (row, is_over) = (Some(whole), true),
                    // Something else wrote to its standard output: nothing may.
                    Err(_) => {}
                },
                Err(RecvTimeoutError::Timeout) => {
                    hung = true;
                    child.kill()?;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = child.wait()?;
        let _ = reader.join();
        let words = String::from_utf8_lossy(&fs::read(words)?).into_owned();
        let tail = words.len().saturating_sub(WORDS);
        let words = words.chars().skip(tail).collect();
        let is_over = is_over && status.success();
        Ok(ChildEnd { row, is_over, last, is_hung: hung, status, words })
    }
}

/// Returns the calls of one case, for the scenarios that count calls, and the cases that a whole
/// campaign has at least. Source: docs/threat-model.md, section 1.
fn counts(name: Name) -> (Option<u64>, u64) {
    match name {
        // Each misdeed in each place and with each answer several times.
        Name::Guests => (None, 10_000),
        // Row 9: 100,000 mutated components.
        Name::Mutants | Name::Smith => (None, 50_000),
        // Rows 25 and 27: each case has six paths, and reads that race with a swap.
        Name::Paths => (None, 20_000),
        // Rows 24 and 85: one call in 29 recurses.
        Name::Mixed => (Some(mixed::CALLS), 300_000_u64.div_ceil(mixed::CALLS)),
        // Row 54: 100,000 calls that leave something behind or look for it.
        Name::Slots => (Some(slots::CALLS), 100_000_u64.div_ceil(slots::CALLS)),
        // Rows 72 to 81, and row 70.
        Name::Server | Name::Schemas => (None, 5_000),
        // The whole table.
        Name::Network | Name::Secrets | Name::Bombs => (None, u64::MAX),
    }
}

/// Shows a status line that the next one overwrites.
fn show(text: &str) {
    let _ = write!(std::io::stderr().lock(), "\r\x1b[2K{text}");
}
