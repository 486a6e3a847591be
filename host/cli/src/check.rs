//! `toolcell check`: whether the configuration can be used, and what it comes to for every tool.

use serde_json::{Value, json};
use toolcell::{Component, Overlay, Tool};

use crate::args::{CheckArgs, Global};
use crate::config::{self, Chosen, Config};
use crate::effective::{self, Effective};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::units::{Count, Size, Time};
use crate::{components, host, table};

/// Characters of a column.
const WIDEST: usize = 24;

/// Judges it, and shows it.
pub(crate) async fn check(printer: &Printer, global: &Global, args: &CheckArgs) -> Result<ExitStatus, Failure> {
    if args.schema {
        printer.json_text(&serde_json::to_string_pretty(&config::schema())?)?;
        return Ok(ExitStatus::Ok);
    }
    let config = Config::read(global)?;
    let Some(file) = config.file.clone() else {
        let message = format!("there is no `{}` here or above", config::NAME);
        return Err(Failure::usage(message, "make one, or name one with `--config FILE`"));
    };
    let engine = host::engine(printer, global, 1, &config)?;
    let (mut shown, mut failures) = (Vec::new(), Vec::new());
    for chosen in config.all() {
        let loaded = components::one(printer, &engine, &config, &chosen).await;
        let loaded = loaded.map_err(|failure| failure.about(format_args!("[components.{}]", name(&chosen))));
        if let Ok(component) = &loaded {
            host::optimised(printer, component, &chosen.path).await;
        }
        let judged = match &loaded {
            Ok(component) if args.json => to_json(&config, &chosen, component),
            Ok(component) => Value::String(to_text(&config, &chosen, component)),
            Err(failure) if args.json => json!({ "name": name(&chosen), "error": failure.to_json() }),
            Err(_) => Value::Null,
        };
        shown.push(judged);
        failures.extend(loaded.err());
    }
    let status = if failures.is_empty() { ExitStatus::Ok } else { ExitStatus::Failed };
    if args.json {
        let ok = failures.is_empty();
        printer.json(&json!({ "config": file, "ok": ok, "warnings": config.warnings, "components": shown }))?;
        return Ok(status);
    }
    let texts: Vec<_> = shown.iter().filter_map(Value::as_str).collect();
    if !texts.is_empty() {
        printer.text(&texts.join("\n\n"))?;
    }
    for warning in &config.warnings {
        printer.note("warning", &warning.to_string());
        printer.note("hint", &warning.hint);
    }
    failures.iter().for_each(|failure| failure.tell(printer));
    if failures.is_empty() {
        printer.note("note", &format!("`{file}` can be used"));
    }
    Ok(status)
}

fn name<'a>(chosen: &Chosen<'a>) -> &'a str {
    chosen.configured.map_or("", |(name, _)| name)
}

/// What a tool may, for everybody or for one tenant.
fn left(tool: &Tool, overlay: Option<&std::sync::Arc<Overlay>>) -> Effective {
    let Some(rights) = tool.rights() else { return Effective::new() };
    let rights = rights.narrowed(overlay.cloned(), None);
    effective::effective(&rights, &tool.definition().needs, overlay.map(|overlay| &**overlay))
}

fn to_json(config: &Config, chosen: &Chosen<'_>, component: &Component) -> Value {
    let tool = |tool: &Tool| {
        let tenants: serde_json::Map<_, _> = config
            .tenants
            .iter()
            .map(|(name, tenant)| (name.clone(), json!(left(tool, tenant.overlay.as_ref()))))
            .collect();
        let definition = tool.definition();
        json!({ "name": definition.name, "needs": definition.needs, "may": left(tool, None), "tenants": tenants })
    };
    let limits = &chosen.limits;
    json!({
        "name": name(chosen),
        "path": chosen.path.to_string_lossy(),
        "digest": component.examination().digest,
        "limits": {
            "timeout_ms": u64::try_from(limits.timeout.as_millis()).unwrap_or(u64::MAX),
            "fuel": limits.fuel,
            "memory": limits.memory,
        },
        "tools": component.tools().iter().map(tool).collect::<Vec<_>>(),
    })
}

fn to_text(config: &Config, chosen: &Chosen<'_>, component: &Component) -> String {
    let limits = &chosen.limits;
    let mut text = vec![
        format!("component {} ({})", name(chosen), chosen.shown()),
        format!("  at most {}, {} fuel, {}", Time(limits.timeout), Count(limits.fuel), Size(limits.memory)),
    ];
    for tool in component.tools() {
        let own = left(tool, None);
        text.push(format!("  tool {}", tool.definition().name));
        text.push(table::columns(4, WIDEST, &effective::rows(&own)));
        for (name, tenant) in &config.tenants {
            let theirs = left(tool, tenant.overlay.as_ref());
            if theirs == own {
                text.push(format!("    for {name}: the same"));
            } else {
                text.push(format!("    for {name}:"));
                text.push(table::columns(6, WIDEST, &effective::rows(&theirs)));
            }
        }
    }
    text.join("\n")
}
