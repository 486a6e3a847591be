//! Whether a namespace is in the state that the ledger promises, row by row.

use std::ops::ControlFlow;

use super::*;

/// What the invariants say: sums that are kept are the sums, and ends are those of the entries.
pub(in crate::kv) fn audit<B: Backend>(store: &B, namespace: &Namespace) {
    let (mut sum, mut ends, mut kept_ends) = (Usage::default(), Vec::new(), Vec::new());
    let (entries, ends_row) = (namespace.row(ENTRY, b""), namespace.row(END, b""));
    let usage = store.read(|rows| {
        rows.visit(b"", &mut |row, content| {
            if row.starts_with(&entries) {
                let (key, head) = (text(row, entries.len()).unwrap(), Head::parse(content).unwrap());
                sum.keys += 1;
                sum.bytes += head.size(&key);
                sum.version = sum.version.max(head.version);
                ends.extend((head.end != NEVER).then_some((head.end, key)));
            } else if let Some((end, key)) = row.strip_prefix(&*ends_row).and_then(|rest| rest.split_first_chunk()) {
                kept_ends.push((u64::from_be_bytes(*end), String::from_utf8(key.to_owned()).unwrap()));
            }
            ControlFlow::Continue(())
        })?;
        rows.get(&namespace.row(USAGE, b""))?.map(|content| Usage::parse(&content)).transpose()
    });
    let usage = usage.unwrap();
    assert_eq!(usage.is_some(), sum.keys > 0, "who has no keys has no rows");
    let usage = usage.unwrap_or_default();
    ends.sort();
    assert!(usage.version >= sum.version, "{usage:?} {sum:?}");
    assert_eq!(Usage { version: usage.version, ..sum }, usage);
    assert_eq!(ends, kept_ends);
}
