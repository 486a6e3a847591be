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

use crate::args::CheckArgs;
use crate::clash::ToolOwners;
use crate::config::{
    self, Approval, ApprovalState, Config, Effective, Isolation, Lock, Problem, ResolvedComponent,
    SecretSelection, Signer, UnsetSecret, effective,
};
use crate::grants::gaps::{self, Gap};
use crate::grants::secrets;
use crate::host::Cli;
use crate::print::{Count, ExitStatus, Result, Size, Time, clean, table};
use crate::{components, host};

/// Characters of a column.
const MAX_COLUMN: usize = 24;

/// Runs the command: validates the configuration, loads its components, and prints the grants.
pub(crate) async fn check(cli: &Cli, args: &CheckArgs) -> Result<ExitStatus> {
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
        let name = name(&chosen);
        let (component, signer) = match components::load(&engines, &chosen).await {
            Ok(loaded) => loaded,
            Err(failure) => {
                let failure = failure.about(format_args!("[components.{name}]"));
                shown.push(json!({ "name": name, "error": failure.to_json() }));
                failures.push(failure);
                continue;
            }
        };
        host::optimised(printer, &component, &chosen.path).await;
        let state = components::approval_state(&lock, name, &component, signer.as_ref());
        if state != ApprovalState::Unchanged {
            let is_developed = chosen.development().is_some();
            let list = if is_developed { &mut developed } else { &mut unapproved };
            list.push(name);
        }
        let (config, signer) = (&config, signer.as_ref());
        let checked = Checked { config, chosen: &chosen, component: &component, signer, state };
        shown.push(if args.json { checked.to_json() } else { checked.to_text().into() });
        let added = component.definitions().map(|tool| homes.add(&tool.name, name));
        clashes.extend(added.filter_map(Result::err));
        components.push((name, component));
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
    let warnings = config.warnings.iter().cloned();
    let warnings = warnings.chain(rules_without_effect(&config, &components)).chain(clashes);
    let warnings: Vec<_> = warnings.collect();
    let unset = config.unset_values();
    let ok = failures.is_empty() && unset.is_empty();
    let status = if ok { ExitStatus::Ok } else { ExitStatus::Failed };
    let quotas = config.tenants.iter().map(|(name, settings)| (name, settings.tenant.quota));
    let quotas: BTreeMap<_, _> = quotas.filter(|(_, quota)| *quota != Quota::default()).collect();
    let texts = |rules: &Vec<_>| rules.iter().map(InvokeRule::to_string).collect::<Vec<_>>();
    let tools = config.tenants.iter();
    let tools =
        tools.filter_map(|(name, settings)| Some((name, texts(settings.tenant.tools.as_ref()?))));
    let tools: BTreeMap<_, _> = tools.collect();
    if args.json {
        let approved = config.approval == Approval::Given
            && unapproved.is_empty()
            && developed.is_empty()
            && failures.is_empty();
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
        printer.warning(warning);
        printer.hint(&warning.hint);
    }
    failures.iter().for_each(|failure| printer.failure(failure));
    for unset in &unset {
        printer.error(secrets::problem_text(unset.problem, &users(&config, *unset, &components)));
        printer.hint(&unset.problem.hint);
    }
    if config.approval == Approval::Missing {
        let message = "was found here, and you have not approved it in its present form: this check read none of its \
                       secrets, and a limit above the default counted as the default";
        printer.warning(format!("`{file}` {message}"));
    }
    if !unapproved.is_empty() {
        let unapproved = unapproved.join(", ");
        printer.warning(format!("not approved, or changed since the approval: {unapproved}"));
    }
    if config.approval == Approval::Missing || !unapproved.is_empty() {
        let approve = config.hint.command("approve", &[], &[]);
        printer.hint(format!(
            "run {approve}: it shows what is new or changed and asks for your approval"
        ));
    } else if ok && !developed.is_empty() {
        let used = developed.join(", ");
        printer.note(format!("`{file}` is valid; not approved, but used in development: {used}"));
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
    let calls = |most| format!("{} call{}", Count(most), if most == 1 { "" } else { "s" });
    let parts = [
        quota.calls_per_minute.map(|most| format!("{} a minute", calls(most))),
        quota.fuel_per_minute.map(|fuel| format!("{} fuel a minute", Count(fuel))),
        quota.concurrent_calls.map(|most| format!("{} at once", calls(most))),
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

fn name<'a>(chosen: &ResolvedComponent<'a>) -> &'a str {
    chosen.configured.map_or("", |(name, _)| name)
}

/// Returns the effective grants of a tool, for one tenant if an overlay is given.
fn effective_grants(tool: &Tool, overlay: Option<&std::sync::Arc<Overlay>>) -> Effective {
    let Some(rights) = tool.rights() else { return Effective::new() };
    let rights = rights.narrowed(overlay.cloned(), None);
    effective::effective(&rights)
}

fn limits(limits: &Limits) -> Value {
    json!({
        "timeout_ms": u64::try_from(limits.timeout.as_millis()).unwrap_or(u64::MAX),
        "fuel": limits.fuel,
        "memory": limits.memory,
    })
}

fn limits_text(limits: &Limits) -> String {
    let Limits { timeout, fuel, memory, .. } = *limits;
    format!("at most {}, {} fuel, {}", Time(timeout), Count(fuel), Size(memory))
}

/// A component that was loaded, and its approval.
struct Checked<'a> {
    config: &'a Config,
    chosen: &'a ResolvedComponent<'a>,
    component: &'a Component,
    signer: Option<&'a Signer>,
    state: ApprovalState,
}

impl Checked<'_> {
    fn to_json(&self) -> Value {
        let Self { config, chosen, component, signer, state } = self;
        let tool = |tool: &Tool| {
            let definition = tool.definition();
            let tenants = config.tenants.iter().map(|(name, tenant)| {
                let is_offered = config.offers(Some(name), &definition.name);
                (name, is_offered.then(|| effective_grants(tool, tenant.tenant.overlay.as_ref())))
            });
            let tenants: BTreeMap<_, _> = tenants.collect();
            let limits = limits(&chosen.limits.tightened(&chosen.limits_of(&definition.name)));
            json!({
                "name": definition.name, "needs": definition.needs, "unmet_needs": self.not_granted(tool),
                "rights": effective_grants(tool, None), "limits": limits, "tenants": tenants,
            })
        };
        json!({
            "name": name(chosen),
            "path": chosen.path.to_string_lossy(),
            "digest": component.inspection().digest,
            "signed_by": signer,
            "state": state,
            "development": chosen.development().is_some(),
            "limits": limits(&chosen.limits),
            "isolation": chosen.isolation,
            "tenant_isolation": self.tenants().collect::<BTreeMap<_, _>>(),
            "tools": component.tools().iter().map(tool).collect::<Vec<_>>(),
        })
    }

    fn to_text(&self) -> String {
        let Self { config, chosen, component, signer, state } = self;
        let limits = &chosen.limits;
        let path = clean::escaped(&chosen.display_path());
        let mut text = vec![format!("component {} ({path}): {}", name(chosen), state.word())];
        text.extend(signer.map(|signer| format!("  signed by {signer}")));
        text.extend(
            chosen.development().map(|why| format!("  DEVELOPMENT: used without approval, {why}")),
        );
        text.push(format!("  {}", limits_text(limits)));
        text.push(format!("  isolation {}", self.isolation()));
        for tool in component.tools() {
            let own = effective_grants(tool, None);
            let tool_name = &tool.definition().name;
            text.push(format!("  tool {tool_name}"));
            let tightened = limits.tightened(&chosen.limits_of(tool_name));
            if tightened != *limits {
                text.push(format!("    {}", limits_text(&tightened)));
            }
            text.push(table::columns(4, MAX_COLUMN, &effective::rows(&own)));
            for gap in self.not_granted(tool) {
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

    /// Returns the declared needs of a tool that are not granted.
    fn not_granted(&self, tool: &Tool) -> Vec<Gap> {
        let Some(rights) = tool.rights() else { return Vec::new() };
        gaps::missing_needs(self.config, name(self.chosen), rights, tool.definition())
    }

    /// Returns the isolation of each tenant's calls.
    fn tenants(&self) -> impl Iterator<Item = (&str, Isolation)> {
        let of_tenant =
            move |name: &str| self.config.isolation_of(Some(name)).max(self.chosen.isolation);
        self.config.tenants.keys().map(move |name| (name.as_str(), of_tenant(name)))
    }

    /// Returns the component's isolation, and that of each tenant with a stronger one.
    fn isolation(&self) -> String {
        let own = self.chosen.isolation;
        let more = self.tenants().filter(|(_, isolation)| *isolation != own);
        let more = more.map(|(name, isolation)| format!(", for {name} {}", isolation.word()));
        format!("{}{}", own.word(), more.collect::<String>())
    }
}
