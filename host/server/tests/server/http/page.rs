//! Reads the table of bad requests in `docs/http.md`.

use super::client::Reply;
use crate::setup::table;

const PAGE: &str = include_str!("../../../../../docs/http.md");
/// Rows with tests of their own, which read the row.
pub(crate) const ELSEWHERE: [&str; 4] = [
    "a head that does not arrive in time",
    "a call while the server shuts down",
    "more bytes of bodies than the server holds",
    "a request that is sent before the answer to the one before it (pipelining)",
];

/// Returns the rows: each case without backticks, and the status and code of its answer. `–` stands
/// for no answer.
pub(crate) fn rows() -> Vec<(String, (String, String))> {
    let plain = |cell: &str| cell.replace('`', "");
    let rows = table(PAGE, "| bad input |").into_iter();
    rows.map(|cells| (plain(cells[0]), (plain(cells[1]), plain(cells[2])))).collect()
}

/// Returns status and code of an answer. The code is that of a problem, or of a refused call.
pub(crate) fn status_and_code(reply: Option<&Reply>) -> (String, String) {
    let none = || "–".to_owned();
    let Some(reply) = reply else { return (none(), none()) };
    let refused = || reply.json()["outcome"]["refusal"]["kind"].as_str().map(str::to_owned);
    let code = if reply.status == 200 {
        refused()
    } else {
        Some(reply.code()).filter(|code| !code.is_empty())
    };
    (reply.status.to_string(), code.unwrap_or_else(none))
}

/// Compares an answer, or its absence, with its row, which must be in `ELSEWHERE`.
#[track_caller]
pub(crate) fn is_as_the_page_says(case: &str, reply: Option<&Reply>) {
    assert!(ELSEWHERE.contains(&case), "`{case}` is not in the list");
    let row = rows().into_iter().find(|(row, _)| row == case);
    let (_, expected) = row.unwrap_or_else(|| panic!("no row `{case}`"));
    assert_eq!(status_and_code(reply), expected, "{case}: {reply:?}");
}
