//! Sets up the diagnostic log on standard error (`tracing`), and the message for a panic.
//!
//! `main` calls [`start`] once with the number of `-v` options; the variable `TOOLCELL_LOG`
//! overrides it with a filter. By default only toolcell's own warnings are printed, not those of
//! libraries, for example about a client that disconnects. [`report_panics`] replaces the message
//! of a panic: only its place in the code is printed, because the message may contain untrusted
//! text or a secret.

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use super::env;
use super::traces::Traces;
use crate::print::Printer;

/// Starts the log, and the export of spans, which the log's filter does not affect. `TOOLCELL_LOG`
/// overrides `-v` and `-q`.
pub(crate) fn start(printer: &Printer, verbose: u8, traces: &Traces) {
    let quiet = Targets::new().with_default(Level::ERROR).with_target("rmcp", LevelFilter::OFF);
    let warnings = Targets::new().with_default(Level::WARN);
    let level = match verbose {
        0 if printer.is_quiet() => quiet,
        0 => quiet.with_target("toolcell", Level::WARN),
        1 => warnings.with_target("toolcell", Level::INFO),
        _ => warnings.with_target("toolcell", Level::DEBUG),
    };
    let filter = env::log_filter()
        .map(|filter| filter.parse::<Targets>())
        .transpose()
        .unwrap_or_else(|error| {
            printer.warning(format!("`TOOLCELL_LOG` is ignored: {error}"));
            printer.hint("write for instance `TOOLCELL_LOG=toolcell=debug`");
            None
        });
    let writer = printer.clone();
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone());
    let lines = lines.with_filter(filter.unwrap_or(level));
    tracing_subscriber::registry().with(lines).with(traces.layer()).init();
}

/// Prints the place of a panic, on whichever thread it happens.
pub(crate) fn report_panics(printer: &Printer) {
    let printer = printer.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let place =
            panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        printer.labelled("bug", format!("toolcell has a bug at {place}"));
        printer.hint("please report it, with the command that you typed");
    }));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set for the child process in which this test panics.
    const PANICS: &str = "TOOLCELL_TEST_PANICS";

    #[test]
    fn panic_log_has_location_without_message() {
        if std::env::var_os(PANICS).is_some() {
            report_panics(&Printer::new());
            panic!("canary-4711");
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([
            "--exact",
            "os::logging::tests::panic_log_has_location_without_message",
            "--nocapture",
        ]);
        let output = child.env(PANICS, "1").output().unwrap();
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(
            !output.status.success() && told.contains("bug: ") && told.contains("logging.rs:"),
            "{told}"
        );
        assert!(!told.contains("canary"), "{told}");
    }
}
