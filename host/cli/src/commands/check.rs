//! `toolcell check`: validates the configuration, and shows the effective grants of each tool.
//!
//! [`check`] reads `toolcell.toml`, loads every component, and prints for each tool what its calls
//! may access: what it declares, reduced to what the file grants, for each tenant too. It also
//! prints declared needs (accesses that a tool's author lists) that are not granted, rules without
//! effect, tools whose names clash, secrets without a value, and whether the components are
//! approved. The output is text or one JSON object. The exit status is 1 if a component cannot be
//! loaded or a value of a secret is missing; clashes and missing approvals are warnings. It waits
//! until the components are optimised, so that later commands start faster. With `--schema` it
//! prints the JSON Schema of the file instead.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcell::grants::InvokeRule;
use toolcell::tenant::Quota;
use toolcell::{Component, Limits, Overlay, Tool};

use super::approve;
use crate::args::CheckArgs;
use crate::clash::ToolOwners;
use crate::config::{
    self, Approval, ApprovalState, Config, Effective, Isolation, Lock, Problem, ResolvedComponent,
    SecretSelection, Signer, UnsetSecret, effective,
};
use crate::grants::gaps::{self, Gap};
use crate::grants::{secrets, unset};
use crate::host::Cli;
use crate::print::exit::ExitStatus;
use crate::print::failure::Failure;
use crate::print::units::{Count, Size, Time};
use crate::print::{clean, table};
use crate::{components, host};

/// Characters of a column.
const MAX_COLUMN: usize = 24;

/// Runs the command: validates the configuration, loads its components, and prints the grants.
pub(crate) async fn check(cli: &Cli, args: &CheckArgs) -> Result<ExitStatus, Failure> {
    let printer = &cli.printer;
    if args.schema {
        printer.json_text(&serde_json::to_string_pretty(&config::schema())?)?;
        return Ok(ExitStatus::Ok);
    }
    let config = cli.config(SecretSelection::All)?;
    let Some(file) = config.file.clone() else {
        let hint = "create a configuration with `toolcell init`, or name one with `--config FILE`";
        return Err(config.missing(hint).into());
    };
    let lock = Lock::beside(&config)?;
    let engines = host::engines(cli, 1, &config)?;
    let (mut shown, mut failures, mut components, mut clashes) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut unapproved, mut developed, mut homes) =
        (Vec::new(), Vec::new(), ToolOwners::default());
    for chosen in config.all() {
        let loaded = components::load(&engines, &chosen).await;
        let loaded =
            loaded.map_err(|failure| failure.about(format_args!("[components.{}]", name(&chosen))));
        if let Ok((component, _)) = &loaded {
            host::optimised(printer, component, &chosen.path).await;
        }
        let judged = match &loaded {
            Ok((component, signer)) => {
                let standing =
                    approve::approval_state(&lock, name(&chosen), component, signer.as_ref());
                let signer = signer.as_ref();
                if standing != ApprovalState::Unchanged {
                    let list = if chosen.development().is_some() {
                        &mut developed
                    } else {
                        &mut unapproved
                    };
                    list.push(name(&chosen));
                }
                if args.json {
                    to_json(&config, &chosen, component, signer, standing)
                } else {
                    Value::String(to_text(&config, &chosen, component, signer, standing))
                }
            }
            Err(failure) if args.json => {
                json!({ "name": name(&chosen), "error": failure.to_json() })
            }
            Err(_) => Value::Null,
        };
        shown.push(judged);
        match loaded {
            Ok((component, _)) => {
                let added =
                    component.definitions().map(|tool| homes.add(&tool.name, name(&chosen)));
                clashes.extend(added.filter_map(Result::err));
                components.push((name(&chosen), component));
            }
            Err(failure) => failures.push(failure),
        }
    }
    clashes.extend(homes.check().err());
    // Warnings, not errors: `run` can use each component alone.
    let clashes = clashes.iter().map(|clash| Problem {
        file: file.clone(),
        line: 0,
        column: 0,
        message: clash.message(),
        hint: "leave out one of the two sections: `serve`, `batch` and `tools` refuse the two together".to_owned(),
    });
    let warnings: Vec<_> = config
        .warnings
        .iter()
        .cloned()
        .chain(rules_without_effect(&config, &components))
        .chain(clashes)
        .collect();
    let unset = config.unset_values();
    let ok = failures.is_empty() && unset.is_empty();
    let status = if ok { ExitStatus::Ok } else { ExitStatus::Failed };
    let quotas = config.tenants.iter().map(|(name, settings)| (name, settings.tenant.quota));
    let quotas: BTreeMap<_, _> = quotas.filter(|(_, quota)| *quota != Quota::default()).collect();
    let texts = |rules: &Vec<_>| rules.iter().map(InvokeRule::to_string).collect::<Vec<_>>();
    let tools: BTreeMap<_, _> = config
        .tenants
        .iter()
        .filter_map(|(name, settings)| Some((name, texts(settings.tenant.tools.as_ref()?))))
        .collect();
    if args.json {
        let approved =
            config.approval == Approval::Given && unapproved.is_empty() && developed.is_empty();
        let form = |unset: &UnsetSecret<'_>| {
            let tools = users(&config, *unset, &components);
            let UnsetSecret { name, tenant, problem } = unset;
            json!({ "name": name, "tenant": tenant, "problem": problem, "tools": tools })
        };
        let unset: Vec<_> = unset.iter().map(form).collect();
        printer.json(&json!({
            "config": file, "ok": ok, "approved": approved, "development_components": developed, "warnings": warnings, "unset_secrets": unset,
            "components": shown, "quotas": quotas, "tenant_tools": tools,
            "secrets": secrets::to_json(&config),
        }))?;
        return Ok(status);
    }
    let texts: Vec<_> = shown.iter().filter_map(Value::as_str).collect();
    if !texts.is_empty() {
        printer.text(&texts.join("\n\n"))?;
    }
    let quotas =
        quotas.iter().map(|(name, quota)| format!("tenant {name}: at most {}", quota_text(quota)));
    let of_tenants: Vec<_> =
        tools.iter().map(|(name, tools)| offered_line(name, tools)).chain(quotas).collect();
    let of_tenants = [of_tenants, secrets::lines(&config)].concat();
    if !of_tenants.is_empty() {
        printer.text(&format!("\n{}", of_tenants.join("\n")))?;
    }
    for warning in &warnings {
        printer.warning(&warning);
        printer.hint(&warning.hint);
    }
    failures.iter().for_each(|failure| printer.failure(failure));
    for unset in &unset {
        printer.error(unset::problem_text(unset.problem, &users(&config, *unset, &components)));
        printer.hint(&unset.problem.hint);
    }
    if config.approval == Approval::Missing {
        let message = "was found here, and you have not approved it in its present form: this check read none of its \
                       secrets, and a limit above the default counted as the default";
        printer.warning(format!("`{file}` {message}"));
    }
    if !unapproved.is_empty() {
        printer.warning(format!(
            "not approved, or changed since the approval: {}",
            unapproved.join(", ")
        ));
    }
    if config.approval == Approval::Missing || !unapproved.is_empty() {
        let approve = config.hint.command("approve", &[], &[]);
        printer.hint(format!(
            "run {approve}: it shows what is new or changed and asks for your approval"
        ));
    } else if ok && !developed.is_empty() {
        let developed = developed.join(", ");
        let message =
            format!("`{file}` is valid; not approved, but used in development: {developed}");
        printer.note(&message);
    } else if ok {
        printer.note(format!("`{file}` is valid, and everything in it is approved"));
    }
    Ok(status)
}

/// Returns a line with the tools that a tenant is offered.
fn offered_line(tenant: &str, tools: &[String]) -> String {
    if tools.is_empty() {
        format!("tenant {tenant}: no tools")
    } else {
        format!("tenant {tenant}: the tools {}", tools.join(", "))
    }
}

/// Returns a quota in words: `60 calls a minute, 10G fuel a minute, 4 calls at once, 64MiB of
/// artifacts`.
fn quota_text(quota: &Quota) -> String {
    let parts = [
        quota.calls_per_minute.map(|calls| format!("{} calls a minute", Count(calls))),
        quota.fuel_per_minute.map(|fuel| format!("{} fuel a minute", Count(fuel))),
        quota.concurrent_calls.map(|calls| format!("{} calls at once", Count(calls))),
        quota.artifact_bytes.map(|bytes| format!("{} of artifacts", Size(bytes))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the rules that have no effect.
fn rules_without_effect(config: &Config, components: &[(&str, Component)]) -> Vec<Problem> {
    let rights = |tool: &Tool| tool.rights().cloned().unwrap_or_default();
    let loaded = components.iter().map(|(name, component)| gaps::Loaded {
        name,
        inspection: component.inspection(),
        tools: component.tools().iter().map(|tool| (tool.definition(), rights(tool))).collect(),
    });
    gaps::rules_without_effect(config, &loaded.collect::<Vec<_>>())
}

/// Returns the names of the tools whose calls need a value that is not set.
fn users(config: &Config, unset: UnsetSecret<'_>, components: &[(&str, Component)]) -> Vec<String> {
    let may_need =
        |tool: &&Tool| tool.rights().is_some_and(|rights| config.may_need(unset, rights));
    let tools = components.iter().flat_map(|(_, component)| component.tools()).filter(may_need);
    tools.map(|tool| tool.definition().name.clone()).collect()
}

/// Returns the declared needs of a tool that are not granted.
fn not_granted(config: &Config, chosen: &ResolvedComponent<'_>, tool: &Tool) -> Vec<Gap> {
    tool.rights()
        .map(|rights| gaps::missing_needs(config, name(chosen), rights, tool.definition()))
        .unwrap_or_default()
}

fn name<'a>(chosen: &ResolvedComponent<'a>) -> &'a str {
    chosen.configured.map_or("", |(name, _)| name)
}

/// Returns the effective grants of a tool, for one tenant if an overlay is given.
fn effective_grants(tool: &Tool, overlay: Option<&std::sync::Arc<Overlay>>) -> Effective {
    let Some(rights) = tool.rights() else { return Effective::new() };
    let rights = rights.narrowed(overlay.cloned(), None);
    effective::effective(&rights)
}

fn to_json(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    component: &Component,
    signer: Option<&Signer>,
    standing: ApprovalState,
) -> Value {
    let tool = |tool: &Tool| {
        let tenants: serde_json::Map<_, _> = config
            .tenants
            .iter()
            .map(|(name, tenant)| {
                let is_offered = config.offers(Some(name), &tool.definition().name);
                (
                    name.clone(),
                    json!(
                        is_offered.then(|| effective_grants(tool, tenant.tenant.overlay.as_ref()))
                    ),
                )
            })
            .collect();
        let definition = tool.definition();
        let limits = limits(&chosen.limits.tightened(&chosen.limits_of(&definition.name)));
        let (name, needs) = (&definition.name, &definition.needs);
        json!({
            "name": name, "needs": needs, "unmet_needs": not_granted(config, chosen, tool), "rights": effective_grants(tool, None), "limits": limits,
            "tenants": tenants,
        })
    };
    json!({
        "name": name(chosen),
        "path": chosen.path.to_string_lossy(),
        "digest": component.inspection().digest,
        "signed_by": signer,
        "state": standing,
        "development": chosen.development().is_some(),
        "limits": limits(&chosen.limits),
        "isolation": chosen.isolation,
        "tenant_isolation": tenants(config, chosen).collect::<BTreeMap<_, _>>(),
        "tools": component.tools().iter().map(tool).collect::<Vec<_>>(),
    })
}

fn limits(limits: &Limits) -> Value {
    json!({
        "timeout_ms": u64::try_from(limits.timeout.as_millis()).unwrap_or(u64::MAX),
        "fuel": limits.fuel,
        "memory": limits.memory,
    })
}

/// Returns the isolation of each tenant's calls.
fn tenants<'a>(
    config: &'a Config,
    chosen: &ResolvedComponent<'_>,
) -> impl Iterator<Item = (&'a str, Isolation)> {
    let own = chosen.isolation;
    config.tenants.keys().map(move |name| (name.as_str(), config.isolation_of(Some(name)).max(own)))
}

/// Returns the component's isolation, and that of each tenant with a stronger one.
fn isolation(config: &Config, chosen: &ResolvedComponent<'_>) -> String {
    let more = tenants(config, chosen).filter(|(_, isolation)| *isolation != chosen.isolation);
    let more = more.map(|(name, isolation)| format!(", for {name} {}", isolation.word()));
    format!("{}{}", chosen.isolation.word(), more.collect::<String>())
}

fn limits_text(limits: &Limits) -> String {
    format!(
        "at most {}, {} fuel, {}",
        Time(limits.timeout),
        Count(limits.fuel),
        Size(limits.memory)
    )
}

fn to_text(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    component: &Component,
    signer: Option<&Signer>,
    standing: ApprovalState,
) -> String {
    let limits = &chosen.limits;
    let mut text = vec![format!(
        "component {} ({}): {}",
        name(chosen),
        clean::escaped(&chosen.display_path()),
        standing.word()
    )];
    text.extend(signer.map(|signer| format!("  signed by {signer}")));
    text.extend(
        chosen.development().map(|why| format!("  DEVELOPMENT: used without approval, {why}")),
    );
    text.push(format!("  {}", limits_text(limits)));
    text.push(format!("  isolation {}", isolation(config, chosen)));
    for tool in component.tools() {
        let own = effective_grants(tool, None);
        let tool_name = &tool.definition().name;
        text.push(format!("  tool {tool_name}"));
        let tightened = limits.tightened(&chosen.limits_of(tool_name));
        if tightened != *limits {
            text.push(format!("    {}", limits_text(&tightened)));
        }
        text.push(table::columns(4, MAX_COLUMN, &effective::rows(&own)));
        for gap in not_granted(config, chosen, tool) {
            text.push(format!("    ! {}", gap.text()));
        }
        for (name, tenant) in &config.tenants {
            let theirs = effective_grants(tool, tenant.tenant.overlay.as_ref());
            if !config.offers(Some(name), tool_name) {
                text.push(format!("    for {name}: not offered"));
            } else if theirs == own {
                text.push(format!("    for {name}: the same grants"));
            } else {
                text.push(format!("    for {name}:"));
                text.push(table::columns(6, MAX_COLUMN, &effective::rows(&theirs)));
            }
        }
    }
    text.join("\n")
}
