//! `toolcell explain`: whether a tool may, who says no, and what would allow it.
//!
//! Invariants: decided by the very value that decides when the tool asks.

use std::path::Path;

use serde_json::json;
use toolcell::{CallContext, Component, Decision, Layer, Request, Suggestion, Tool, names, toml_text};

use crate::args::{ExplainArgs, Global};
use crate::components;
use crate::config::{Chosen, Config, Wanted};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::host::{self, Engines};
use crate::printer::Printer;

/// Explains.
pub(crate) async fn explain(printer: &Printer, global: &Global, args: &ExplainArgs) -> Result<ExitStatus, Failure> {
    let request = Request::parse(&args.request).map_err(|bad| Failure::usage(bad.to_string(), bad.hint))?;
    let config = Config::read_with(global, Wanted::None)?;
    let context = config.on_behalf(CallContext::default(), args.tenant.as_deref())?;
    let engines = host::engines(printer, global, 1, &config)?;
    let (chosen, tool) = find(printer, &engines, &config, args.component.as_deref(), &args.tool).await?;
    // What it may is decided by what it declares and by the file, also of a component that could not be loaded with that.
    let rights = toolcell::Rights::new(chosen.grants().into(), tool.definition());
    let rights = rights.map_err(|bad| Failure::usage(bad.to_string(), bad.hint))?;
    let tenant = context.tenant.as_ref().and_then(|tenant| config.tenants.get(tenant));
    let rights = rights.narrowed(tenant.and_then(|tenant| tenant.overlay.clone()), None);
    let decision = rights.allows(&request);
    let lines = Suggestion::of(&request).lines();
    if args.json {
        let denial = match &decision {
            Decision::Allowed => None,
            Decision::Denied(denial) => Some(denial),
        };
        let tool = &tool.definition().name;
        printer.json(
            &json!({ "tool": tool, "request": request.to_string(), "allowed": denial.is_none(), "denial": denial }),
        )?;
    } else {
        printer.text(&decision.to_string())?;
        if let Decision::Denied(denial) = &decision {
            printer.note(
                "hint",
                &hint(&config, &chosen, (context.tenant.as_deref(), &args.tool), denial.layer, &request, &lines),
            );
        }
    }
    Ok(if decision == Decision::Allowed { ExitStatus::Ok } else { ExitStatus::Refusal })
}

/// What would allow it, and where that would stand.
fn hint(
    config: &Config,
    chosen: &Chosen<'_>,
    (tenant, tool): (Option<&str>, &str),
    layer: Layer,
    request: &Request<'_>,
    lines: &[String],
) -> String {
    match layer {
        Layer::Declared => {
            format!("no grant of yours allows it: the tool's author would have to declare {}", lines.join(", "))
        }
        Layer::Granted => components::advice(config, chosen, &Suggestion::of(request)),
        Layer::Tool | Layer::Tenant | Layer::Call | _ => {
            let of_tool = chosen.section_of(tool).filter(|_| layer == Layer::Tool);
            let section = of_tool.unwrap_or_else(|| format!("tenants.{}", tenant.unwrap_or("NAME")));
            // What is left of files are paths as the tool sees them, and of variables and secrets their names.
            let lines = match request {
                Request::File { access, path } => vec![format!("files = [{}]", toml_text(&format!("{access} {path}")))],
                Request::Environment { name } => vec![format!("environment = [{}]", toml_text(name))],
                Request::Secret { name } => vec![format!("secrets = [{}]", toml_text(name))],
                Request::Http { .. } | Request::Reveal { .. } | Request::Key { .. } | Request::Keys { .. } | _ => {
                    lines.to_vec()
                }
            };
            format!("to allow it, widen [{section}]: {}", lines.join(", "))
        }
    }
}

/// The tool of a name, in one component or in all that the file names. What is not granted does not keep it from being found.
pub(crate) async fn find<'a>(
    printer: &Printer,
    engines: &Engines<'_>,
    config: &'a Config,
    component: Option<&Path>,
    tool: &str,
) -> Result<(Chosen<'a>, Tool), Failure> {
    let places = match component {
        Some(word) => vec![config.choose(word)?],
        None => config.all().collect(),
    };
    if places.is_empty() {
        return Err(Failure::usage("no component is named", "name one with `--component FILE`, or in `toolcell.toml`"));
    }
    let (mut found, mut known, mut failed) = (Vec::new(), Vec::new(), None);
    for chosen in places {
        match load(printer, engines, &chosen).await {
            Ok(component) => {
                known.extend(component.definitions().map(|tool| tool.name.clone()));
                found.extend(component.tool(tool).ok().map(|tool| (chosen, tool.clone())));
            }
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    if found.len() > 1 {
        let homes: Vec<_> = found.iter().map(|(chosen, _)| chosen.shown()).collect();
        let message = format!("several components offer a tool `{tool}`: {}", homes.join(", "));
        return Err(Failure::usage(message, "say which with `--component NAME`"));
    }
    match (found.pop(), failed) {
        (Some(found), _) => Ok(found),
        (None, Some(failure)) => Err(failure),
        (None, None) => {
            let near = names::nearest(tool, known.iter().map(String::as_str));
            let hint = near
                .map_or_else(|| format!("there are: {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
            Err(Failure::usage(format!("there is no tool `{}`", tool.escape_debug()), hint))
        }
    }
}

async fn load(printer: &Printer, engines: &Engines<'_>, chosen: &Chosen<'_>) -> Result<Component, Failure> {
    components::freely(printer, engines, components::bytes(chosen)?.0, chosen).await
}
