//! Lists paths that a tool looked for in a dry run (a run without effects) and does not declare as
//! a need.
//!
//! `learn` adds the denials of [`undeclared`] to those that it reports, because a dry run answers
//! such paths with stand-ins and so sends no event of a denial. Such a path stays denied whatever
//! the operator grants, since only the tool's author can declare it. At most five paths are
//! returned. System paths are left out, because language runtimes look there by themselves.

use toolcell::grants::{Decision, Denial, Layer, Request, Rights};
use toolcell::runtime::Recording;

use crate::commands::run::live;

/// The most paths that are reported.
const MAX_PATHS: usize = 5;

/// Returns the denials of paths that the tool does not declare. A dry run has no events of them.
/// System paths are left out, because language runtimes look there.
pub(super) fn undeclared(rights: &Rights, recorded: &Recording) -> impl Iterator<Item = Denial> {
    let paths = recorded.paths.iter().filter(|(path, _)| !live::is_of_system(path));
    let decisions = paths.map(|(path, used)| {
        rights.allows(&Request::File { access: used.access, path: path.as_str().into() })
    });
    let denials = decisions.filter_map(|decision| match decision {
        Decision::Denied(denial) => Some(denial),
        Decision::Allowed => None,
    });
    denials.filter(|denial| denial.layer == Layer::Declaration).take(MAX_PATHS)
}
