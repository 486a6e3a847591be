//! Finds the proxy's password in the text of a configuration, and hides it.
//!
//! The URL of a proxy in `[network]` can have a password. Before the text of a configuration is
//! shown, as by `toolcell approve`, [`without_password`] replaces the password by `***`. Line
//! numbers stay the same. If the place of the password cannot be determined, the whole value is
//! hidden. [`has_password`] says if there is one; then no tool may be granted to read the file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The text that replaces a password.
const HIDDEN: &str = "***";

/// Replaces the proxy's password in the text of a configuration. Line numbers stay the same.
pub fn without_password(text: &str) -> String {
    match password(text).and_then(|range| {
        Some((text.get(..range.start)?, text.get(range.clone())?, text.get(range.end..)?))
    }) {
        Some((before, hidden, after)) => {
            format!("{before}{HIDDEN}{}{after}", "\n".repeat(hidden.matches('\n').count()))
        }
        None => text.to_owned(),
    }
}

/// Returns true if the text contains the proxy's credentials.
pub(crate) fn has_password(text: &str) -> bool {
    password(text).is_some()
}

/// Returns the range of the proxy's credentials, or that of the whole value if their place cannot
/// be determined.
fn password(text: &str) -> Option<Range<usize>> {
    let (tree, _) = DeTable::parse_recoverable(text);
    let DeValue::Table(network) = tree.get_ref().get("network")?.get_ref() else { return None };
    let proxy = network.get("proxy")?;
    let DeValue::String(url) = proxy.get_ref() else { return None };
    let (_, after) = url.split_once("://").unwrap_or(("", url));
    after.rsplit_once('@')?;
    let span = proxy.span();
    let written = text.get(span.clone())?;
    let inner = || {
        let start = written.find("://")? + 3;
        let end = written.rfind('@').filter(|end| *end >= start && !written.contains('\\'))?;
        // A user name alone can be a token.
        let colon = written.get(start..end)?.find(':').map_or(start, |colon| start + colon + 1);
        Some(span.start + colon..span.start + end)
    };
    Some(inner().unwrap_or(span.start + 1..span.end - 1))
}
