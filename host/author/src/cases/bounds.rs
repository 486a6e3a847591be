//! Checks the size and depth of a YAML text before it is parsed into values.
//!
//! The reader of files of test cases calls [`check`] with the text of a YAML file. It returns
//! nothing, or the reason and the place (line and column) for which the text is refused: invalid
//! YAML, more than 128 levels of nesting, or more than 16 MiB once each alias (`*name`, which
//! repeats an earlier value) is replaced by the value that it stands for.
//!
//! The check exists because the deserializer takes time that is quadratic in the depth, and copies
//! the target of each alias. The event parser that is used here does neither.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser};
use toolcell::controls::enforced;

/// Bytes of one file of cases, also with its aliases expanded.
pub(super) const MAX_FILE: u64 = 16 << 20;
/// Nesting depth of lists and maps: the limit of the deserializer.
const MAX_DEPTH: usize = 128;
/// The message of the parser's own depth limit, which is higher and is reported before any events.
const RECURSION: &str = "recursion limit exceeded";

/// Refuses a text that is not YAML, nests deeper than [`MAX_DEPTH`] levels, or has more than
/// [`MAX_FILE`] bytes with its aliases expanded.
pub(super) fn check(text: &str) -> Result<(), String> {
    if !enforced!(CasesBounds) {
        return Ok(());
    }
    let refused = |problem: &str, at: &Marker| {
        Err(format!("{problem} at line {} column {}", at.line(), at.col() + 1))
    };
    let too_deep = format!("it nests deeper than {MAX_DEPTH} levels");
    // `bytes`: the size so far with aliases expanded. `anchors`: the size of each anchor. `open`:
    // the anchor and the start of each open collection.
    let (mut bytes, mut anchors, mut open) = (0, BTreeMap::new(), Vec::new());
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(read) => read,
            Err(error) if error.info() == RECURSION => return refused(&too_deep, error.marker()),
            Err(error) => return refused(error.info(), error.marker()),
        };
        match event {
            Event::Scalar(text, _, anchor, _) => {
                let own = text.len() as u64 + 1;
                bytes += own;
                anchors.insert(anchor, own);
            }
            // An alias of a collection that is still open is recursive; the deserializer refuses
            // it.
            Event::Alias(anchor) => bytes += anchors.get(&anchor).copied().unwrap_or_default(),
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                open.push((anchor, bytes));
                bytes += 1;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = open.pop() {
                    anchors.insert(anchor, bytes - before);
                }
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
        }
        if open.len() > MAX_DEPTH {
            return refused(&too_deep, &span.start);
        }
        if bytes > MAX_FILE {
            return refused(
                &format!("its aliases stand for more than {MAX_FILE} bytes"),
                &span.start,
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_deeply_nested_yaml_is_refused() {
        for opening in ["[", "- ", "{a: ", "? ", "a: [", "[{"] {
            let error = check(&opening.repeat(20_000)).expect_err(opening);
            assert!(
                error.starts_with("it nests deeper than 128 levels at line 1 column "),
                "{opening}: {error}"
            );
        }
        let most = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert_eq!(check(&most), Ok(()));
        assert_eq!(check(&format!("a: \"{}\"", "[".repeat(20_000))), Ok(()), "text is no list");
    }

    #[test]
    fn yaml_alias_expansion_is_bounded() {
        let text = |times| format!("a: &a {}\nb: [{}]", "x".repeat(1 << 10), "*a, ".repeat(times));
        assert_eq!(check(&text(1 << 10)), Ok(()));
        let levels =
            (1..30).map(|level| format!("\nl{level}: &l{level} [*l{0}, *l{0}]", level - 1));
        for text in [text(1 << 15), format!("l0: &l0 x{}", levels.collect::<String>())] {
            let error = check(&text).expect_err("it is too much");
            assert!(
                error.starts_with("its aliases stand for more than 16777216 bytes at line "),
                "{error}"
            );
        }
    }
}
