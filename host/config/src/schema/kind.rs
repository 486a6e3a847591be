//! The use of a component, which the keys `as` and `command` of its section set.
//!
//! A component usually describes its own tools. With `as = "functions"` each exported function is a
//! tool; with `as = "command"` the program is one tool, and `[components.NAME.command]` says which
//! arguments it gets and how its output is read. Reading a configuration calls [`of_component`]
//! with the section. It returns the library's [`ComponentKind`], and reports settings that
//! contradict each other, such as `media_type` for an output of text.

use schemars::JsonSchema;
use serde::Deserialize;
use toolcell::component::{Command, CommandOutput, ComponentKind};

use crate::problem::Problems;
use crate::schema::{self, At};

/// The kind of a component.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Kind {
    #[default]
    Tools,
    Functions,
    Command,
}

/// Returns the kind that the section of the component `name` sets.
pub(crate) fn of_component(
    problems: &mut Problems<'_>,
    name: &str,
    said: &schema::Component,
) -> ComponentKind {
    let kind = said.kind.unwrap_or_default();
    if let Some(command) = said.command.as_ref().filter(|_| kind != Kind::Command) {
        let hint = format!("add `as = \"command\"` to [components.{name}], or remove this section");
        problems.error(
            &command.span,
            format!(
                "[components.{name}] has a section `command`, and is not used `as = \"command\"`"
            ),
            hint,
        );
    }
    match kind {
        Kind::Tools => ComponentKind::Tools,
        Kind::Functions => ComponentKind::Functions,
        Kind::Command => ComponentKind::Command(command(problems, name, said)),
    }
}

fn command(problems: &mut Problems<'_>, name: &str, said: &schema::Component) -> Command {
    let mut command = Command::new(name);
    let Some(At { value: settings, span }) = &said.command else { return command };
    command.description.clone_from(&settings.description);
    command.argv.clone_from(&settings.argv);
    command.stdin = settings.stdin.unwrap_or_default();
    command.output = settings.output.unwrap_or_default();
    command.media_type.clone_from(&settings.media_type);
    if command.media_type.is_some() && command.output != CommandOutput::Bytes {
        problems.error(
            span,
            "`media_type` needs `output = \"bytes\"`",
            "add `output = \"bytes\"`, or remove `media_type`",
        );
    }
    // An invalid name is reported elsewhere, with its own place.
    if let Err(error) = command.definition().map(drop)
        && super::is_name(name)
    {
        problems.error(span, error.to_string(), "rename the parameter in `argv`");
    }
    command
}
