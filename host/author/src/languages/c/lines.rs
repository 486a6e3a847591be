//! Reduces the debug information of a compiled module to the author's own files.
//!
//! The host needs DWARF (the debug information of compilers) to show the source line of a trap.
//! That of Zig's libraries takes a megabyte and has paths of the machine that built them.
//! [`of_authors`] takes the core module, the project folder and the author's files. It returns the
//! DWARF sections of the compilation units of these files only, with their paths relative to the
//! folder. The result is small and the same in every folder.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use gimli::write::{
    Address, AttributeValue, ConvertLineRow, ConvertResult, ConvertUnit, Dwarf, EndianVec,
    LineProgram, LineString, Sections,
};
use gimli::{DW_AT_comp_dir, LineEncoding, LittleEndian};
use wasmparser::{Parser, Payload};

use crate::lines::{self, Reader};
use crate::{Error, Result};

/// The folder that relative paths start from.
const HERE: &[u8] = b".";
/// The folder that files of others get.
const LIBRARY: &str = "/lib/libc";

/// Returns the remaining sections by name. `files` are the author's, as they were passed to the
/// compiler in this folder.
pub(super) fn of_authors(
    module: &[u8],
    folder: &Path,
    files: &[PathBuf],
) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut read = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::CustomSection(section) = payload.map_err(Error::internal)? {
            read.push((section.name(), section.data()));
        }
    }
    let dwarf = lines::dwarf(&read).map_err(Error::internal)?;
    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    reduced(&dwarf, folder, files)
        .and_then(|mut kept| Ok(kept.write(&mut sections)?))
        .map_err(Error::internal)?;
    let mut kept = Vec::new();
    let each = sections.for_each(|id, data| {
        kept.extend((!data.slice().is_empty()).then(|| (id.name(), data.slice().to_vec())));
        Ok::<_, gimli::Error>(())
    });
    each.map_err(Error::internal)?;
    Ok(kept)
}

/// Returns the compilation units of these files, which are paths below the folder.
fn reduced(
    dwarf: &gimli::Dwarf<Reader<'_>>,
    folder: &Path,
    files: &[PathBuf],
) -> ConvertResult<Dwarf> {
    let mut kept = Dwarf::default();
    let mut units = kept.convert(dwarf)?;
    while let Some((mut unit, mut root)) = units.read_unit()? {
        let is = |name: Reader<'_>| {
            files.iter().any(|file| file.as_os_str().as_encoded_bytes() == name.slice())
        };
        if !unit.read_unit.name.is_some_and(is) {
            unit.skip();
            continue;
        }
        root.read_entry.attrs.retain(|attribute| attribute.name() != DW_AT_comp_dir);
        unit.convert(root, &|address| Some(Address::Constant(address)))?;
        unit.unit.line_program = relative(&mut unit, folder)?;
        let root = unit.unit.root();
        unit.unit.get_mut(root).set(DW_AT_comp_dir, AttributeValue::String(HERE.to_vec()));
    }
    Ok(kept)
}

/// Returns the line program of the unit with paths relative to the folder. Other files are headers
/// of the SDK and of the C library, of which only the names stay.
fn relative(unit: &mut ConvertUnit<'_, Reader<'_>>, folder: &Path) -> ConvertResult<LineProgram> {
    let old = &unit.unit.line_program;
    let here = LineString::String(HERE.to_vec());
    let mut new =
        LineProgram::new(old.encoding(), LineEncoding::default(), here.clone(), None, here, None);
    let text = |string: &LineString| {
        if let LineString::String(bytes) = string { bytes.clone() } else { Vec::new() }
    };
    // The order stays: other parts of the unit refer to files by number.
    for (number, (_, name, directory)) in old.files().enumerate() {
        let path = Path::new(OsStr::from_bytes(&text(old.get_directory(directory))))
            .join(OsStr::from_bytes(&text(name)));
        let path = match path.strip_prefix(folder) {
            Ok(path) => path.to_owned(),
            Err(_) if path.is_relative() => path,
            Err(_) => Path::new(LIBRARY)
                .join(number.to_string())
                .join(path.file_name().unwrap_or_default()),
        };
        new.add_file(
            LineString::String(path.into_os_string().into_vec()),
            new.default_directory(),
            None,
        );
    }
    let Some(mut rows) = unit.read_line_program(None, None)? else { return Ok(new) };
    while let Some(row) = rows.read_row()? {
        match row {
            ConvertLineRow::SetAddress(address) => new.set_address(Address::Constant(address)),
            ConvertLineRow::Row(row) => {
                *new.row() = row;
                new.generate_row();
            }
            ConvertLineRow::EndSequence(length) => new.end_sequence(length),
        }
    }
    Ok(new)
}
