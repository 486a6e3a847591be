//! `--format`: JSON in our own form, or in a provider's.
//!
//! Not here: the forms (`toolcell::Provider`).

use std::collections::BTreeSet;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use toolcell::{Note, Provider};

use crate::printer::Printer;

/// Notes that are told: a stranger's definitions could make any number.
const MAX_NOTES: usize = 100;

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// This project's.
    Own,
    /// A provider's.
    Of(Provider),
}

/// Reads a form; `own` is the name of ours.
pub(crate) fn parser(own: &'static str) -> impl TypedValueParser<Value = Format> {
    let names = [own].into_iter().chain(Provider::ALL.map(Provider::name));
    PossibleValuesParser::new(names).map(|name| name.parse().map_or(Format::Own, Format::Of))
}

/// Tells what a conversion had to change, each thing once.
pub(crate) fn tell(printer: &Printer, notes: &[Note]) {
    let notes: BTreeSet<_> = notes.iter().map(ToString::to_string).collect();
    for note in notes.iter().take(MAX_NOTES) {
        printer.note("note", note);
    }
    if let more @ 1.. = notes.len().saturating_sub(MAX_NOTES) {
        printer.note("note", &format!("{more} more changes are not listed"));
    }
}
