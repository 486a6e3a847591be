//! Reports the progress of a long call.

use super::imports;

/// Reports `done` of `total` units of work, with a line for a person.
///
/// ```
/// use toolcell_guest::progress;
/// progress::report(3, 10, "three of ten pages");
/// progress::report(4, None, None); // the total is unknown
/// ```
pub fn report<'a>(done: u64, total: impl Into<Option<u64>>, message: impl Into<Option<&'a str>>) {
    imports::progress(done, total.into(), message.into());
}
