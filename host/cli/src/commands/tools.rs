//! `toolcell tools`: prints definitions in the format of a model provider.
//!
//! [`tools`] loads the named components, or all of the configuration, and prints the definitions of
//! their tools (name, description, JSON schema of the arguments) as one JSON list. With `--format`
//! the list has the form that a provider's API expects in `tools` of a request. A note on standard
//! error tells each change that this form made necessary.
//!
//! Not here: the conversion, in `toolcell::Provider`.

use toolcell::Tool;

use crate::args::ToolsArgs;
use crate::components::{self, OnUnusable};
use crate::config::SecretSelection;
use crate::host::{self, Cli};
use crate::print::{ExitStatus, Format, Result, format};

/// Prints the definitions. A tool that the format cannot express is left out with a note; if none
/// can be expressed, that is an error.
pub(crate) async fn tools(cli: &Cli, args: &ToolsArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    let config = cli.config(SecretSelection::None)?;
    let components =
        components::chosen(&config, &components::typed_components(&config, &args.components)?)?;
    let engines = host::engines(cli, 1, &config)?;
    let left_out = OnUnusable::unless(!args.components.is_empty());
    let tools = components::tools(&engines, &components, left_out, None).await?;
    let definitions = tools.iter().map(Tool::definition);
    match args.format {
        Format::Own => printer.json(&definitions.collect::<Vec<_>>())?,
        Format::Of(provider) => {
            let converted = provider.definitions(definitions)?;
            printer.json(&converted.value)?;
            format::print_notes(printer, &converted.notes);
        }
    }
    Ok(ExitStatus::Ok)
}
