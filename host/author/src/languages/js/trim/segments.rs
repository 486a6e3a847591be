//! Rewrites the data of a core module in fewer segments, to make the file smaller.
//!
//! A data segment is a run of bytes with an address, which the engine copies into memory at the
//! start. A snapshot has one for each run of bytes that are not zero. A segment's header takes more
//! bytes than a short run of zeros, so [`join_active`] joins two segments with a gap shorter than
//! the header and fills the gap with zeros. It returns the new segments, or `None` if the section
//! has other kinds of segments; `trim` then leaves it as it is.

use wasmparser::{DataKind, DataSectionReader, Operator};

/// Bytes of a segment's header with an offset of four bytes: flags, an instruction with the offset,
/// its end, a length.
const HEAD: usize = 8;

/// Bytes at an address in the first memory.
pub(super) struct Segment {
    pub(super) place: i32,
    pub(super) bytes: Vec<u8>,
}

/// Returns the number of leading passive segments, which are empty, and the joined active segments.
/// Returns `None` if the section has other segments.
pub(super) fn join_active(
    section: DataSectionReader<'_>,
) -> wasmparser::Result<Option<(usize, Vec<Segment>)>> {
    let (mut dropped, mut segments) = (0, Vec::<Segment>::new());
    for data in section {
        let data = data?;
        let place = match data.kind {
            DataKind::Passive if data.data.is_empty() && segments.is_empty() => {
                dropped += 1;
                continue;
            }
            DataKind::Active { memory_index: 0, offset_expr } => {
                let Operator::I32Const { value } = offset_expr.get_operators_reader().read()?
                else {
                    return Ok(None);
                };
                value
            }
            DataKind::Active { .. } | DataKind::Passive => return Ok(None),
        };
        let gap = segments.last().and_then(|last| {
            let end = usize::try_from(last.place).ok()? + last.bytes.len();
            usize::try_from(place).ok()?.checked_sub(end).filter(|gap| *gap < HEAD)
        });
        match (gap, segments.last_mut()) {
            (Some(gap), Some(last)) => {
                last.bytes.resize(last.bytes.len() + gap, 0);
                last.bytes.extend(data.data);
            }
            _ => segments.push(Segment { place, bytes: data.data.to_vec() }),
        }
    }
    Ok(Some((dropped, segments)))
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{ConstExpr, DataSection, Encode as _};
    use wasmparser::BinaryReader;

    use super::*;

    #[test]
    fn segments_with_a_short_gap_are_joined() {
        for (segments, expected) in [
            (
                &[(8, &b"ab"[..]), (17, b"c"), (26, b"d")][..],
                Some(&[(8, &b"ab\0\0\0\0\0\0\0c"[..]), (26, b"d")][..]),
            ),
            (&[(0, b"a"), (1, b"b")], Some(&[(0, b"ab")])),
            // Segments that are out of order or overlap stay as they are.
            (&[(8, b"ab"), (0, b"c")], Some(&[(8, b"ab"), (0, b"c")])),
            (&[(8, b"ab"), (9, b"c")], Some(&[(8, b"ab"), (9, b"c")])),
            (&[(-8, b"a"), (-6, b"b")], Some(&[(-8, b"a"), (-6, b"b")])),
            (&[], Some(&[])),
        ] {
            let mut section = DataSection::new();
            section.passive([]);
            for (place, bytes) in segments {
                section.active(0, &ConstExpr::i32_const(*place), bytes.iter().copied());
            }
            let found = read(&section).map(|(dropped, found)| {
                assert_eq!(dropped, 1);
                found.into_iter().map(|segment| (segment.place, segment.bytes)).collect::<Vec<_>>()
            });
            let expected = expected
                .map(|all| all.iter().map(|(place, bytes)| (*place, bytes.to_vec())).collect());
            assert_eq!(found, expected);
        }
        let mut other = DataSection::new();
        other.active(0, &ConstExpr::i32_const(0), *b"a").passive(*b"b");
        assert!(read(&other).is_none());
    }

    fn read(section: &DataSection) -> Option<(usize, Vec<Segment>)> {
        let mut encoded = Vec::new();
        section.encode(&mut encoded);
        let mut reader = BinaryReader::new(&encoded, 0);
        reader.read_var_u32().expect("its length");
        let at = reader.original_position();
        join_active(
            DataSectionReader::new(BinaryReader::new(&encoded[at..], 0)).expect("a section"),
        )
        .expect("valid")
    }
}
