//! The command `attack`: runs a campaign, or one part of it, prints the report and sets the exit
//! status.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use toolcell_attack::options::{Options, Part};
use toolcell_attack::{Report, campaign, compile, run_scenario};

fn main() -> ExitCode {
    let options = Options::parse();
    match options.part {
        Some(Part::Perform(part)) => {
            run_scenario(&part);
            return ExitCode::SUCCESS;
        }
        Some(Part::Compile { order }) => return compile(&order).into(),
        None => {}
    }
    let seed = options.campaign.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    if !options.campaign.json {
        print(&Report::opening(seed));
    }
    match campaign(&options.campaign, seed) {
        Ok(report) => {
            print(&if options.campaign.json { report.json() + "\n" } else { report.text() });
            if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            let _ =
                writeln!(std::io::stderr().lock(), "error: the campaign cannot be played: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
