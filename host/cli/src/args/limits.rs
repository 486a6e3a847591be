//! The options that limit one call: `--timeout`, `--fuel`, `--memory`, `--max-result`.
//!
//! `run`, `batch` and `learn` include [`LimitArgs`], which clap (the parser) fills.
//! [`LimitArgs::over`] takes the limits of the configuration or the defaults, and returns them with
//! those of the command line in their place. Fuel is counted in executed instructions.
//! [`LimitArgs::words`] writes the options as words again, for a command that is printed for the
//! user to paste. The help shows each default with its unit, taken from the library.

use toolcell::Limits;

use crate::print::{Count, Size, Time};

/// How much one call may use. An option wins over `toolcell.toml`, which wins over the defaults; a
/// tool's and a tenant's own limits still apply.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    #[arg(long, value_name = "TIME", help = limit_help("Wall time, waiting included", Time(Limits::DEFAULT_TIMEOUT)), long_help = limit_help(
        "Wall time, waiting included: `500ms`, `2s`, `1m`; a tool's own bound can be shorter", Time(Limits::DEFAULT_TIMEOUT)
    ))]
    pub(crate) timeout: Option<Time>,
    #[arg(long, value_name = "N", help = limit_help("Executed instructions", Count(Limits::DEFAULT_FUEL)), long_help = limit_help(
        "Executed instructions; one unit is about one WebAssembly instruction: `1000000`, `500M`, `10G`", Count(Limits::DEFAULT_FUEL)
    ))]
    pub(crate) fuel: Option<Count>,
    #[arg(long, value_name = "SIZE", help = limit_help("Memory of the tool", Size(Limits::DEFAULT_MEMORY)), long_help = limit_help(
        "All memories and tables of the cell together: `512KiB`, `64MiB`, `1GiB`", Size(Limits::DEFAULT_MEMORY)
    ))]
    pub(crate) memory: Option<Size>,
    #[arg(long, value_name = "SIZE", help = limit_help("Size of the answer", Size(Limits::DEFAULT_RESULT)), long_help = limit_help(
        "Everything that the tool answers, as JSON: `64KiB`, `8MiB`", Size(Limits::DEFAULT_RESULT)
    ))]
    pub(crate) max_result: Option<Size>,
}

fn limit_help(meaning: &str, default: impl std::fmt::Display) -> String {
    format!("{meaning} [default: {default}]")
}

impl LimitArgs {
    /// Returns the options, with these limits for those that were not typed.
    pub(crate) fn over(&self, mut limits: Limits) -> Limits {
        limits.timeout = self.timeout.map_or(limits.timeout, |Time(timeout)| timeout);
        limits.fuel = self.fuel.map_or(limits.fuel, |Count(fuel)| fuel);
        limits.memory = self.memory.map_or(limits.memory, |Size(memory)| memory);
        limits.result = self.max_result.map_or(limits.result, |Size(result)| result);
        limits
    }

    /// Returns the options as words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let Self { timeout, fuel, memory, max_result } = self;
        let options = [
            ("--timeout", timeout.as_ref().map(ToString::to_string)),
            ("--fuel", fuel.as_ref().map(ToString::to_string)),
            ("--memory", memory.as_ref().map(ToString::to_string)),
            ("--max-result", max_result.as_ref().map(ToString::to_string)),
        ];
        let typed = options.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        typed.flatten().collect()
    }
}
