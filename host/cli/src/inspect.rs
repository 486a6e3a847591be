//! `toolcell inspect`: what a component offers and what it asks for, also of one that cannot be loaded.

use std::path::Path;

use serde_json::json;
use toolcell::{Code, Component, Definition, Examination, Grants, Hints, Standing, Tool};

use crate::args::{Global, InspectArgs};
use crate::config::{Config, Isolation, Wanted};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::signature::Signer;
use crate::units::{Size, Time};
use crate::{clean, components, effective, host, schema, table};

/// Characters of a column of parameters: a longer type pushes its line to the right.
const WIDEST: usize = 48;

/// Shows it.
pub(crate) async fn inspect(printer: &Printer, global: &Global, args: &InspectArgs) -> Result<ExitStatus, Failure> {
    let config = Config::read_with(global, Wanted::None)?;
    let chosen = config.choose(&args.component)?;
    let (bytes, signer) = components::bytes(&chosen)?;
    let seen = Examination::of(&bytes).map_err(|error| Failure::from(error).about(chosen.shown()))?;
    let engines = host::engines(printer, global, 1, &config)?;
    let loaded = components::loaded(printer, &engines, &config, &chosen, bytes).await;
    let loaded = loaded.map_err(|failure| failure.about(format_args!("{} cannot be loaded", chosen.shown())));
    let path = &chosen.path;
    // Whoever looks at a component is about to use it: what comes next finds it optimised.
    if let Ok(component) = &loaded {
        host::optimised(printer, component, path).await;
    }
    if args.json {
        printer.json(&to_json(path, &seen, (signer.as_ref(), chosen.isolation), &loaded))?;
    } else {
        printer.text(&to_text(path, &seen, (signer.as_ref(), chosen.isolation), loaded.as_ref().ok()))?;
        if let Err(failure) = &loaded {
            failure.tell(printer);
        }
    }
    Ok(if loaded.is_ok() { ExitStatus::Ok } else { ExitStatus::Failed })
}

fn to_json(
    path: &Path,
    seen: &Examination,
    (signer, isolation): (Option<&Signer>, Isolation),
    loaded: &Result<Component, Failure>,
) -> serde_json::Value {
    let imports: Vec<_> =
        seen.imports.iter().map(|(name, standing)| json!({ "name": name, "standing": standing })).collect();
    let mut shown = json!({
        "component": path.to_string_lossy(),
        "digest": seen.digest,
        "signed_by": signer,
        "size": seen.size,
        "imports": imports,
        "isolation": isolation,
        "loadable": loaded.is_ok(),
    });
    let rest = match loaded {
        Ok(component) => json!({
            "cached": component.is_cached(),
            "compile_us": component.compile_time().map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
            "code": component.code(),
            "pooled": component.is_pooled(),
            "tools": component.definitions().collect::<Vec<_>>(),
            "rights": component.tools().iter().filter_map(rights).collect::<serde_json::Map<_, _>>(),
        }),
        Err(failure) => json!({ "error": failure.to_json() }),
    };
    if let (Some(shown), serde_json::Value::Object(mut rest)) = (shown.as_object_mut(), rest) {
        shown.append(&mut rest);
    }
    shown
}

/// A tool's name and what it may.
fn rights(tool: &Tool) -> Option<(String, serde_json::Value)> {
    let definition = tool.definition();
    Some((definition.name.clone(), json!(effective::effective(tool.rights()?, definition, None))))
}

fn to_text(
    path: &Path,
    seen: &Examination,
    (signer, isolation): (Option<&Signer>, Isolation),
    loaded: Option<&Component>,
) -> String {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut facts = vec![
        row("component", path.display().to_string()),
        row("digest", seen.digest.clone()),
        row("size", Size(seen.size).rounded()),
    ];
    facts.extend(signer.map(|signer| row("signed by", signer.to_string())));
    if let Some(component) = loaded {
        let when = match component.compile_time() {
            Some(time) => format!("now, in {} ms", time.as_millis()),
            None => "before: it came from the cache".to_owned(),
        };
        facts.push(row("compiled", format!("{when}; {}", tier(component.code()))));
        let memory = if component.is_pooled() { "from the pool" } else { "made on demand, not from the pool" };
        facts.push(row("cells", format!("{}: {memory}", isolation.word())));
    }
    let mut text = vec![table::columns(0, WIDEST, &facts), String::new(), imports(seen)];
    for shown in loaded.iter().flat_map(|component| component.tools()) {
        text.extend([String::new(), tool(shown.definition())]);
        if let Some(rights) = shown.rights().filter(|rights| *rights.granted() != Grants::default()) {
            let left = effective::effective(rights, shown.definition(), None);
            text.extend(["  may".to_owned(), table::columns(4, WIDEST, &effective::rows(&left))]);
        }
    }
    text.join("\n")
}

fn tier(code: Code) -> &'static str {
    match code {
        Code::Optimised => "optimised",
        Code::Unoptimised => "not optimised",
        Code::Quick => "being optimised",
        _ => "in another way",
    }
}

fn imports(seen: &Examination) -> String {
    if seen.imports.is_empty() {
        return "imports  none".to_owned();
    }
    let row = |(name, standing): (String, Standing)| {
        let (word, meaning) = match standing {
            Standing::Inert if name.starts_with("wasi:sockets/") => {
                ("inert", "imported by its language runtime; every use is denied")
            }
            Standing::Inert => ("inert", "for its language runtime; reaches nothing"),
            Standing::Offered => ("offered", "a service of the host; needs no grant"),
            Standing::NeedsGrant => ("needs_grant", "would reach out of the cell; needs a grant"),
            Standing::Unknown => ("unknown", "not known to this host"),
            _ => ("other", ""),
        };
        vec![name, word.to_owned(), meaning.to_owned()]
    };
    let rows: Vec<_> = folded(&seen.imports).into_iter().map(row).collect();
    format!("imports\n{}", table::columns(2, usize::MAX, &rows))
}

/// The imports, with one line for all the inert interfaces of a package: `wasi:cli/*@0.2.6`.
fn folded(imports: &[(String, Standing)]) -> Vec<(String, Standing)> {
    let mut rows = Vec::<(String, Standing)>::new();
    for (name, standing) in imports {
        let package = name.split_once('/').zip(name.rsplit_once('@')).filter(|_| *standing == Standing::Inert);
        let shown =
            package.map_or_else(|| name.clone(), |((package, _), (_, version))| format!("{package}/*@{version}"));
        if !rows.iter().any(|(row, _)| *row == shown) {
            rows.push((shown, *standing));
        }
    }
    rows
}

fn tool(definition: &Definition) -> String {
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
                table::columns(4, WIDEST, &rows)
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
        text.push(format!("  says of itself: {}", hints.join(", ")));
    }
    if let Some(bound) = definition.max_execution {
        text.push(format!("  runs for at most {}", Time(bound)));
    }
    for need in &definition.needs {
        text.push(table::paragraph(2, &format!("needs {} {}: {}", need.kind, need.pattern, need.reason)));
    }
    text.join("\n")
}
