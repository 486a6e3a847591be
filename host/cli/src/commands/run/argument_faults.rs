//! Prints the faults of arguments that do not fit a tool's parameters.
//!
//! When a call is refused because of its arguments, `run` and `learn` call [`print_faults`] with
//! the words of the command line, the text of the arguments, and the faults that the library found.
//! It prints each fault as a line of an error, and one hint: a forgotten `@` before a file name,
//! the repaired JSON after a typing mistake, or the command that shows the tool's parameters.

use std::path::Path;

use toolcell::outcome::{Fault, FaultKind};

use crate::args::{CallArgs, json_repair};
use crate::config::{HintCommand, quoted};
use crate::os::files;
use crate::print::Printer;

/// Prints each fault, and a hint with the command that shows the parameters.
pub(crate) fn print_faults(
    printer: &Printer,
    call: &CallArgs,
    again: &HintCommand,
    text: &str,
    faults: &[Fault],
) {
    let typed = call.tool.iter().chain(&call.arguments).last().map(String::as_str);
    let is_read = typed.is_some_and(|typed| typed == "-" || typed.starts_with('@'));
    let place = files::place_of_arguments(typed);
    let read = if is_read { format!(" from {place}") } else { String::new() };
    printer.error(format!("the arguments{read} do not fit the tool's parameters"));
    // Not printed for arguments that are too large.
    let is_empty = text.trim().is_empty()
        && faults.iter().any(|fault| matches!(fault.kind, FaultKind::Required { .. }));
    if is_empty {
        let message = format!("{place} is empty, or only white space, which means `{{}}`");
        printer.print_item("error", message);
    }
    faults.iter().for_each(|fault| printer.print_item("error", fault));
    if let [only] = call.arguments.as_slice()
        && Path::new(only).is_file()
    {
        // The name of a file, typed without its `@`.
        return printer.hint(format!("did you mean `{}`?", quoted(&format!("@{only}"))));
    }
    let is_syntax = faults.iter().any(|fault| matches!(fault.kind, FaultKind::Syntax { .. }));
    let text =
        call.tool.iter().chain(&call.arguments).find(|word| word.trim_start().starts_with('{'));
    if let Some(hint) = text.filter(|_| is_syntax).and_then(|text| json_repair::hint(text)) {
        return printer.hint(hint);
    }
    let inspect = again.command("inspect", &[], &[&call.component.to_string_lossy()]);
    let form = match is_syntax || is_empty {
        false => String::new(),
        true if is_read => format!("write one JSON object to {place}; "),
        true => "write NAME=VALUE, or one JSON object in quotes for the shell; ".to_owned(),
    };
    printer.hint(format!("{form}{inspect} shows the parameters"));
}
