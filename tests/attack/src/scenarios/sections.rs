//! Splits a component into its sections.

use std::ops::Range;

use toolcell_tests::binary::{COMPONENT, of_component, section};

/// A section: its id, and the ranges of the section and of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) id: u8,
    pub(crate) whole: Range<usize>,
    pub(crate) content: Range<usize>,
}

/// Returns the sections of a component, up to the first that is malformed.
pub(crate) fn split_sections(bytes: &[u8]) -> Vec<Section> {
    let mut pieces = Vec::new();
    let mut at = COMPONENT.len();
    while let Some(id) = bytes.get(at) {
        let (mut size, mut next) = (0, at + 1);
        for shift in (0..35).step_by(7) {
            let Some(byte) = bytes.get(next) else { return pieces };
            size |= usize::from(byte & 0x7f) << shift;
            next += 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let end = next + size;
        if end > bytes.len() {
            return pieces;
        }
        pieces.push(Section { id: *id, whole: at..end, content: next..end });
        at = end;
    }
    pieces
}

fn first_module(component: &[u8]) -> Option<Section> {
    split_sections(component).into_iter().find(|piece| piece.id == of_component::CORE_MODULE)
}

/// Returns the first core module inside.
pub(crate) fn module(component: &[u8]) -> Option<Vec<u8>> {
    let found = first_module(component)?;
    Some(component[found.content].to_vec())
}

/// Returns the component with another first core module.
pub(crate) fn with_module(component: &[u8], module: &[u8]) -> Option<Vec<u8>> {
    let found = first_module(component)?;
    let other = section(of_component::CORE_MODULE, module);
    Some([&component[..found.whole.start], &other, &component[found.whole.end..]].concat())
}
