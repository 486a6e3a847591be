//! The diagnostic log: `tracing` to standard error, quiet unless asked.

use tracing_subscriber::EnvFilter;

use crate::env;
use crate::printer::Printer;

/// Starts it. `TOOLCELL_LOG` wins over `-v`.
pub(crate) fn start(printer: &Printer, verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "warn,toolcell=info",
        _ => "warn,toolcell=debug",
    };
    let filter = env::log_filter().map(EnvFilter::try_new).transpose().unwrap_or_else(|error| {
        printer.note("warning", &format!("`TOOLCELL_LOG` is ignored: {error}"));
        printer.note("hint", "write for instance `TOOLCELL_LOG=toolcell=debug`");
        None
    });
    let writer = printer.clone();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|| EnvFilter::new(level)))
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .init();
}
