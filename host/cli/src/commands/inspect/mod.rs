//! `toolcell inspect`: shows the tools and imports of a component, whatever it is granted.
//!
//! [`inspect`] analyses the component's file, loads it without grants, and asks it for the
//! definitions of its tools; no tool is called. It prints the digest, the size, the imports with
//! their meaning, each tool with its parameters, its needs (the accesses that it declares) and
//! effective grants, and suggestions for its author, as text or as one JSON object. Texts that seem
//! to be written to steer a model are warnings. A component that cannot be loaded is shown as far
//! as possible, with exit status 1. If it does not describe tools itself, the tools that it would
//! have with `--as` are shown.
//!
//! `approve` prints new components with [`imports`] and [`tool`].

mod contents;
pub(crate) mod lint;

use serde_json::json;
use toolcell::component::{
    CodeTier, Command, ComponentBytes, ComponentKind, Contents, ImportStatus, Inspection,
    OnMissingGrant,
};
use toolcell::grants::Rights;
use toolcell::tool::{Hints, Need};
use toolcell::{Component, Definition, Grants};

use crate::args::{InspectArgs, target};
use crate::config::{Effective, ResolvedComponent, SecretSelection, Signer, effective};
use crate::grants::advice;
use crate::host::Cli;
use crate::print::{ExitStatus, Failure, Printer, Result, Time, clean, schema, table};
use crate::{components, host};

pub(crate) use contents::brought_by;

/// Characters of a column of parameters: a longer type pushes its line to the right.
const MAX_COLUMN: usize = 48;

/// The facts that are shown.
struct Facts<'a> {
    chosen: ResolvedComponent<'a>,
    inspection: Inspection,
    contents: Contents,
    signer: Option<Signer>,
    kind: ComponentKind,
    /// `missing`: imports that have to be granted. `barred`: those that would have to be if no
    /// grant existed.
    missing: Vec<String>,
    barred: Vec<String>,
    grants: Grants,
    /// The tool that is shown; absent: all tools.
    tool: Option<&'a str>,
}

impl Facts<'_> {
    fn is_shown(&self, tool: &&Definition) -> bool {
        self.tool.is_none_or(|name| tool.name == name)
    }
}

/// Runs the command: examines the component, loads it if possible, and prints the facts.
pub(crate) async fn inspect(cli: &Cli, args: &InspectArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    let config = cli.config(SecretSelection::None)?;
    let chosen = components::choose(&config, &args.component)?;
    let (bytes, signer) = chosen.bytes()?;
    let about = |error: toolcell::Error| Failure::from(error).about(chosen.display_path());
    let inspection = Inspection::of(&bytes).map_err(about)?;
    let contents = Contents::of(&bytes).map_err(about)?;
    let engines = host::engines(cli, 1, &config)?;
    let proposal = proposal(&chosen, &inspection);
    let kind = proposal.clone().unwrap_or_else(|| chosen.kind());
    let bytes = ComponentBytes::new(bytes, kind.clone());
    let no_grants = Grants::default();
    let loaded = engines.load(&chosen, bytes, no_grants.clone(), OnMissingGrant::Denied).await;
    let loaded = loaded.and_then(|component| {
        chosen.check_tools(&component)?;
        Ok(component)
    });
    let grants = chosen.grants();
    let tools = || loaded.iter().flat_map(Component::definitions);
    let barred = components::missing_imports(&inspection, tools(), &no_grants);
    let missing = components::missing_imports(&inspection, tools(), &grants);
    if let (Ok(component), Some(name)) = (&loaded, &args.tool)
        && !component.definitions().any(|tool| tool.name == *name)
    {
        let known = component.definitions().map(|tool| tool.name.as_str());
        return Err(target::unknown(name, known));
    }
    let tool = args.tool.as_deref();
    let seen = Facts { chosen, inspection, contents, signer, kind, missing, barred, grants, tool };
    let chosen = &seen.chosen;
    let ungranted = match &loaded {
        Ok(component) => components::ungranted(&config, chosen, component),
        Err(_) => None,
    };
    if args.json {
        let error = loaded.as_ref().err().or(ungranted.as_ref());
        printer.json(&to_json(&seen, loaded.as_ref().ok(), error)?)?;
    } else {
        printer.text(&to_text(&seen, loaded.as_ref().ok())?)?;
    }
    let component = match loaded {
        Ok(component) => component,
        Err(failure) => {
            if !args.json {
                printer.failure(
                    &failure.about(format_args!("{} cannot be loaded", chosen.display_path())),
                );
            }
            return Ok(ExitStatus::Failed);
        }
    };
    if args.json {
        return Ok(ExitStatus::Ok);
    }
    for tool in component.described().filter(|tool| seen.is_shown(tool)) {
        warn(printer, "", tool);
    }
    for (_, problem) in component.unusable_tools() {
        printer.warning(format!("a tool is left out: {}", clean::escaped(problem)));
    }
    if let Some(kind) = &proposal {
        let word = kind.word();
        let note = if matches!(kind, ComponentKind::Command(_)) {
            "this is a WASI program, not a component for toolcell; the tool shown is what it becomes with `as = \"command\"`"
        } else {
            "the component does not describe tools; the tools shown are what its functions become with `as = \"functions\"`"
        };
        printer.note(note);
        let run = config.hint.command("run", &["--as", word], &[&chosen.word()]);
        printer.hint(format!(
            "call it with {run}, or write `as = \"{word}\"` in its section of `toolcell.toml`"
        ));
    }
    if let Some(failure) = ungranted {
        printer.note(format!("the component cannot be called yet: {}", failure.message()));
        printer.hint(&failure.hint);
        if component.definitions().any(|tool| !tool.needs.is_empty()) {
            let learn = advice::how_to_learn(&config, chosen, &component);
            printer.hint(format!("to grant less, {learn}"));
        }
    }
    Ok(ExitStatus::Ok)
}

/// Returns the possible kind of a component that describes no tools itself, if no configuration
/// states its kind.
fn proposal(chosen: &ResolvedComponent<'_>, examination: &Inspection) -> Option<ComponentKind> {
    let word = examination.proposal().filter(|_| chosen.kind() == ComponentKind::Tools)?;
    Some(if word == ComponentKind::Functions.word() {
        ComponentKind::Functions
    } else {
        ComponentKind::Command(Command::new(chosen.tool_name()))
    })
}

/// Warns of texts in a definition that seem written to steer a model, and of parts that are not
/// enforced. `of` names the component if that is not clear.
pub(crate) fn warn(printer: &Printer, of: &str, tool: &Definition) {
    for problem in tool.unenforced() {
        printer.warning(format!("{of}{}: {}", tool.name, clean::escaped(&problem)));
    }
    for suspicion in tool.suspicions() {
        let (place, excerpt) =
            (clean::escaped(&suspicion.pointer), clean::escaped(&suspicion.excerpt));
        printer.warning(format!("{of}{}{place} {}: \"{excerpt}\"", tool.name, suspicion.kind));
    }
}

fn to_json(
    seen: &Facts<'_>,
    loaded: Option<&Component>,
    error: Option<&Failure>,
) -> Result<serde_json::Value> {
    let Facts { chosen, inspection, contents, signer, kind, barred, .. } = seen;
    let imports = inspection.imports.iter().map(|(name, standing)| {
        let modules: Vec<_> = contents.callers(name).collect();
        json!({ "name": name, "status": standing, "modules": modules })
    });
    let can = contents::without_grants(inspection, barred).filter(|_| loaded.is_some());
    let mut shown = json!({
        "component": chosen.path.to_string_lossy(),
        "digest": inspection.digest,
        "signed_by": signer,
        "size": inspection.size,
        "imports": imports.collect::<Vec<_>>(),
        "isolation": chosen.isolation,
        "loadable": error.is_none(),
        "producers": contents.producers,
        "modules": contents.modules,
        "sections": contents.sections,
        "without_grants": { "callable": can.is_some(), "capabilities": can.unwrap_or_default() },
    });
    if let Some(failure) = error {
        shown["error"] = failure.to_json();
    }
    if *kind != ComponentKind::Tools {
        shown["as"] = json!({ "kind": kind.word(), "settings": kind.to_string(), "proposed": *kind != chosen.kind() });
    }
    if let Some(component) = loaded {
        let compile_time = component.compile_time();
        shown["cached"] = json!(component.is_cached());
        shown["compile_us"] =
            json!(compile_time.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)));
        shown["code_tier"] = json!(component.code());
        shown["pooled"] = json!(component.is_pooled());
        let all: Vec<_> = component.definitions().collect();
        let tools: Vec<_> = component.definitions().filter(|tool| seen.is_shown(tool)).collect();
        shown["tools"] = json!(tools);
        for tool in tools {
            shown["rights"][&tool.name] = json!(effective_grants(chosen, tool)?);
            shown["suspicions"][&tool.name] = json!(tool.suspicions());
        }
        for tool in component.described().filter(|tool| seen.is_shown(tool)) {
            shown["unenforced"][&tool.name] = json!(tool.unenforced());
        }
        let unusable = component.unusable_tools();
        shown["unusable_tools"] =
            unusable.map(|(tool, problem)| json!({"tool": tool, "problem": problem})).collect();
        shown["lint"] = json!(lint::findings(kind, inspection, contents, &all));
    }
    Ok(shown)
}

/// Returns the effective grants of a tool.
fn effective_grants(chosen: &ResolvedComponent<'_>, tool: &Definition) -> Result<Effective> {
    let rights = Rights::new(chosen.grants().into(), tool);
    let rights = rights.map_err(|bad| Failure::usage(bad.to_string(), bad.hint))?;
    Ok(effective::effective(&rights))
}

fn to_text(seen: &Facts<'_>, loaded: Option<&Component>) -> Result<String> {
    let Facts { chosen, inspection, contents, signer, kind, .. } = seen;
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut facts = vec![
        row("component", chosen.path.display().to_string()),
        row("digest", inspection.digest.clone()),
        row("size", contents::sizes(inspection.size, contents)),
    ];
    facts.extend(contents::producers(contents).map(|names| row("made with", names)));
    if *kind != ComponentKind::Tools {
        let proposed = if *kind == chosen.kind() { "" } else { " (proposed)" };
        facts.push(row("used as", format!("{}{proposed}", clean::escaped(&kind.to_string()))));
    }
    facts.extend(signer.as_ref().map(|signer| row("signed by", signer.to_string())));
    if let Some(component) = loaded {
        let when = match component.compile_time() {
            Some(time) => format!("now, in {} ms", time.as_millis()),
            None => "earlier, from the cache".to_owned(),
        };
        facts.push(row("compiled", format!("{when}; {}", tier_text(component.code()))));
        let memory = if component.is_pooled() { "" } else { "; memory is allocated for each call" };
        facts.push(row("isolation", format!("{}{memory}", chosen.isolation.word())));
    }
    // The error that follows has the reason.
    let without = match loaded {
        Some(_) => contents::without_grants_shown(inspection, &seen.barred),
        None => contents::REFUSED.to_owned(),
    };
    facts.push(row("without grants", without));
    let imports = imports(inspection, &seen.missing, &seen.grants, contents);
    let mut text = vec![table::columns(0, MAX_COLUMN, &facts), String::new(), imports];
    let tools: Vec<_> = loaded.iter().flat_map(|component| component.definitions()).collect();
    for definition in tools.iter().filter(|tool| seen.is_shown(tool)) {
        text.extend([String::new(), tool(definition)]);
        let left = effective_grants(chosen, definition)?;
        if left.is_empty() {
            text.push("  grants: none".to_owned());
        } else {
            let rows = table::columns(4, MAX_COLUMN, &effective::rows(&left));
            text.push(format!("  grants\n{rows}"));
        }
    }
    let lint =
        lint::finding_lines(&lint::findings(kind, inspection, contents, &tools), contents, &tools);
    if !lint.is_empty() {
        text.push(String::new());
        text.extend(lint);
    }
    Ok(text.join("\n"))
}

fn tier_text(code: CodeTier) -> &'static str {
    match code {
        CodeTier::Optimised => "optimised",
        CodeTier::Unoptimised => "not optimised",
        CodeTier::Quick => "not optimised yet",
        _ => "in another way",
    }
}

/// Returns the imports of a component with their meaning, in lines. `missing` are the names of
/// those that are not granted. `contents` tells which modules have an import that the author's
/// module does not have.
pub(crate) fn imports(
    seen: &Inspection,
    missing: &[String],
    grants: &Grants,
    contents: &Contents,
) -> String {
    let is_inert = |(_, standing): &&(String, ImportStatus)| *standing == ImportStatus::Inert;
    let (inert, others): (Vec<_>, Vec<_>) = seen.imports.iter().partition(is_inert);
    let row = |(name, standing): &(String, ImportStatus)| {
        let (word, meaning) = match standing {
            ImportStatus::Offered => ("offered", "a service of the host; needs no grant"),
            ImportStatus::NeedsGrant if missing.contains(name) => ("needs_grant", "not granted"),
            ImportStatus::NeedsGrant if seen.ungranted(grants).any(|(other, _)| other == name) => {
                ("needs_grant", "no tool declares it: each use is denied")
            }
            ImportStatus::NeedsGrant => ("needs_grant", "granted"),
            ImportStatus::Unknown => ("unknown", "not known to this host"),
            ImportStatus::Inert | _ => ("other", ""),
        };
        let by =
            brought_by(contents, name).map(|by| format!(", brought by {by}")).unwrap_or_default();
        vec![name.clone(), word.to_owned(), format!("{meaning}{by}")]
    };
    let rows: Vec<_> = others.into_iter().map(row).collect();
    let mut text = vec!["imports".to_owned()];
    if !rows.is_empty() {
        text.push(table::columns(2, usize::MAX, &rows));
    }
    match inert.len() {
        0 if rows.is_empty() => return "imports  none".to_owned(),
        0 => {}
        inert => text.push(format!(
            "  {inert} WASI interfaces for its language runtime, which give access to nothing by themselves"
        )),
    }
    text.join("\n")
}

/// Returns the text about a tool: its description, parameters, output, hints and needs.
pub(crate) fn tool(definition: &Definition) -> String {
    let mut text = vec![format!("tool {}", definition.name)];
    if !definition.description.trim().is_empty() {
        text.push(table::paragraph(2, &definition.description));
    }
    match &definition.parameters {
        None => text.push("  takes any object".to_owned()),
        Some(parameters) => {
            let row = |parameter: schema::Parameter| {
                let required = if parameter.required { "required" } else { "optional" };
                let description = clean::note(&parameter.description).into_owned();
                vec![parameter.name, parameter.kind, required.to_owned(), description]
            };
            let rows: Vec<_> = schema::parameters(parameters).into_iter().map(row).collect();
            text.push(if rows.is_empty() {
                "  takes no named parameter".to_owned()
            } else {
                table::columns(4, MAX_COLUMN, &rows)
            });
        }
    }
    if let Some(output) = &definition.output {
        text.push(table::paragraph(2, &format!("returns {}", schema::kind(output))));
    }
    let Hints { read_only, idempotent, destructive, open_world, .. } = definition.hints;
    let hints = [
        (read_only, "read-only"),
        (idempotent, "idempotent"),
        (destructive, "destructive"),
        (open_world, "open world"),
    ];
    let hints: Vec<_> = hints.iter().filter_map(|(set, name)| set.then_some(*name)).collect();
    if !hints.is_empty() {
        text.push(format!("  claims to be {}", hints.join(", ")));
    }
    if let Some(bound) = definition.max_execution {
        text.push(format!("  runs for at most {}", Time(bound)));
    }
    if !definition.needs.is_empty() {
        let row = |need: &Need| vec![need.kind.clone(), need.pattern.clone(), need.reason.clone()];
        let rows: Vec<_> = definition.needs.iter().map(row).collect();
        text.extend(["  needs".to_owned(), table::columns(4, MAX_COLUMN, &rows)]);
    } else if definition.declares_needs() {
        text.push("  needs nothing: its list of needs is empty, so it can use no grant".to_owned());
    }
    text.join("\n")
}
