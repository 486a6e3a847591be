//! `toolcell rollback`: makes the previously approved version of a component current again.
//!
//! [`rollback`] reads the configuration, asks `toolcell-config` to restore the version of the named
//! component before the current one, and prints both digests, as text or as JSON. If the replaced
//! file was never approved, a copy of it is kept, and its path is printed.
//!
//! Not here: the change of the lock file (approvals) and of the component's file, in
//! `configuration/rollback.rs` of `toolcell-config`.

use serde_json::json;

use crate::args::RollbackArgs;
use crate::config::SecretSelection;
use crate::host::Cli;
use crate::print::{ExitStatus, Result};

/// Runs the command: goes back to the previous version, and prints it.
pub(crate) fn rollback(cli: &Cli, args: &RollbackArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    let config = cli.config(SecretSelection::None)?;
    if config.file.is_none() {
        let hint = "go to the directory of the file, or name one with `--config FILE`; \
                    a component that is run by its path has no earlier version";
        return Err(config.missing(hint).into());
    }
    let done = config.rollback(&args.component)?;
    if args.json {
        printer.json(&json!(done))?;
        return Ok(ExitStatus::Ok);
    }
    printer.note(format!(
        "`{}` was rolled back from {} to {}, which was approved before",
        done.component, done.from, done.to
    ));
    if let Some(kept) = &done.backup {
        let kept = kept.display();
        printer
            .note(format!("the file that was replaced was never approved: a copy is in `{kept}`"));
    }
    Ok(ExitStatus::Ok)
}
