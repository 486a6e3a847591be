//! The value of the option `--format`: JSON in toolcell's own form, or in a model provider's.
//!
//! `batch` and `tools` parse the option with [`parser`] into a [`Format`], which is toolcell's own
//! form or one of the providers of the library. A provider's form cannot express everything; the
//! library returns a note for each change, and [`print_notes`] prints each once, at most 100.
//!
//! Not here: the forms, in `toolcell::Provider`.

use std::collections::BTreeSet;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use toolcell::Provider;
use toolcell::provider::Note;

use super::printer::Printer;

/// The most notes that are printed: an untrusted definition could cause any number.
const MAX_NOTES: usize = 100;

/// A form of calls, definitions or messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// This project's.
    Own,
    /// A provider's.
    Of(Provider),
}

/// Returns the parser of the option; `own` is the name of our own form.
pub(crate) fn parser(own: &'static str) -> impl TypedValueParser<Value = Format> {
    let names = [own].into_iter().chain(Provider::ALL.map(Provider::name));
    PossibleValuesParser::new(names).map(|name| name.parse().map_or(Format::Own, Format::Of))
}

/// Prints each change of a conversion once, as a note.
pub(crate) fn print_notes(printer: &Printer, notes: &[Note]) {
    let notes: BTreeSet<_> = notes.iter().map(ToString::to_string).collect();
    for note in notes.iter().take(MAX_NOTES) {
        printer.note(note);
    }
    if let more @ 1.. = notes.len().saturating_sub(MAX_NOTES) {
        printer.note(format!("{more} more changes are not listed"));
    }
}
