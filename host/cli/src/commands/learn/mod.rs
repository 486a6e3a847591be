//! `toolcell learn`: performs a dry run of a tool and prints the grants that it needs.
//!
//! [`learn`] takes a tool and arguments. It calls the tool with stand-ins: a request that is not
//! granted is answered by status 200 and `{}`, a file that is not granted is an empty one, and
//! everything is recorded. The tool runs again, at most 16 times, while it looks for more files.
//! Standard output gets the smallest additional grants, as lines for `toolcell.toml`; standard
//! error gets what is granted already, what remains to do, and warnings.
//!
//! No file of the user is changed, and no request without a grant is sent. Existing grants are used
//! for reading only, and only if the user approved them. No value of a secret is read. The tool's
//! requests are untrusted text; a host name that the tool computed is not looked up, because a
//! lookup could carry data away.

mod changed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::json;
use toolcell::component::{ComponentBytes, Contents, OnMissingGrant, PathUse};
use toolcell::grants::{Decision, Denial, Host, HttpRule, Layer, Request, Rights, Suggestion};
use toolcell::http::Egress;
use toolcell::runtime::{Recorder, Recording};
use toolcell::tool::Need;
use toolcell::{
    CallContext, CallOptions, CallResult, Definition, Event, Executor, Grants, Outcome, Overlay,
    Refusal, ToolCall,
};

use super::explain::{self, FoundTool};
use super::run::{argument_faults, live};
use crate::args::{DEFAULT_ID, LearnArgs, target};
use crate::config::{self, Config, SecretSelection};
use crate::grants::advice;
use crate::grants::dry_run_files::{DryRunFiles, directory_of};
use crate::grants::grant_text::{self, Change, Pasted};
use crate::grants::offered::NotOffered;
use crate::host::Cli;
use crate::print::{ExitStatus, Result, clean};
use crate::{components, host};
use changed::Changed;

/// The most denials that are kept: a tool can make a hundred thousand requests.
const MAX_DENIALS: usize = 1000;
/// The most runs of the tool. Each has the files that the one before looked for.
const MAX_RUNS: usize = 16;
/// Paths of a directory that are listed.
const MAX_PATHS: usize = 5;
/// The most paths without a declared need that are reported.
const MAX_UNDECLARED: usize = 5;

/// The result of a dry run.
#[derive(Default)]
struct Learned {
    /// The grants that are missing.
    missing: Suggestion,
    /// Requests that are granted already.
    granted: BTreeSet<String>,
    /// Requests that the component's grants, or the sections of the tool and the tenant, do not
    /// allow.
    denied: Vec<Request<'static>>,
    /// The requests among them that the component's grants do allow.
    narrowed: BTreeSet<String>,
    /// Files and variables that a real call would not get, each with the directory or the variable
    /// to grant. A dry run provides them, so that there is no event of a denial.
    unreachable: Vec<(String, Denial)>,
}

/// Runs the command.
pub(crate) async fn learn(cli: &Cli, args: &LearnArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    let target = target::Target::of_call(&args.call, args.kind.as_deref() == Some("command"))?;
    let config = cli.config(SecretSelection::None)?;
    let used_as: Vec<_> = args.kind.iter().map(|kind| format!("as={kind}")).collect();
    let config = components::with_command_line_grants(
        config,
        std::slice::from_ref(&args.call.component),
        &used_as,
    )?;
    let recorder = Recorder::new();
    let engines = host::engines(cli, 1, &config)?.dry_run(&recorder);
    let found = explain::find(&engines, &args.call.component, target.tool).await;
    let found = found.map_err(|failure| match components::choose(&config, &args.call.component) {
        Ok(chosen) => target::not_found(failure, &args.call, &chosen.kind()),
        Err(other) => other,
    });
    let FoundTool { chosen, component, tool } = found?;
    let name = tool.definition().name.clone();
    let arguments = target.arguments.of(tool.definition());
    let (bytes, signer) = chosen.bytes()?;
    let is_python = Contents::of(&bytes).is_ok_and(|contents| contents.is_python());
    let is_approved = components::is_approved(&config, &chosen, &component, signer.as_ref())?;
    let granted = chosen.grants();
    let context = config::for_tenant(&config, CallContext::default(), args.tenant.as_deref())?;
    let tenant = context.tenant.as_deref();
    if let Some(unreached) = NotOffered::first_not_offered(&config, tenant, [name.as_str()]) {
        printer.warning(unreached.sentence());
        printer.hint(unreached.hint());
    }
    let overlay = tenant.and_then(|name| config.tenants.get(name)?.tenant.overlay.clone());
    let rights = tool.rights().cloned().unwrap_or_default().with_granted(Arc::new(granted.clone()));
    let rights = rights.narrowed(overlay.clone(), None);
    let used = if is_approved { granted.clone() } else { Grants::default() };
    let used = overlay.map_or(used.clone(), |overlay| without_narrowed(used, &overlay));
    let mut root = DryRunFiles::new(used, tool.definition())?;
    let bytes = ComponentBytes::new(bytes, chosen.kind());
    let component = engines.load(&chosen, bytes, root.grants(), OnMissingGrant::Denied).await;
    let component = component.map_err(|failure| failure.about(chosen.display_path()))?;
    let tool = component.tool(&name)?.clone().with_limits(chosen.limits_of(&name));
    let denials = Arc::<Mutex<Vec<Denial>>>::default();
    let heard = Arc::clone(&denials);
    let executor =
        Executor::new().with_limits(args.limits.over(chosen.limits)).with_events(move |event| {
            if let Event::Denied { denial, .. } = event {
                let mut heard = heard.lock();
                if heard.len() < MAX_DENIALS && !heard.contains(&denial) {
                    heard.push(denial);
                }
            }
        });
    // All runs begin within the time limit of one call.
    let until = Instant::now() + args.limits.over(chosen.limits).timeout;
    let mut runs = 0;
    let result = loop {
        let call = ToolCall::new(DEFAULT_ID, &name, arguments.text.clone());
        let result = executor.call(&tool, call, CallOptions::default()).await.result;
        runs += 1;
        let is_last = runs == MAX_RUNS || Instant::now() >= until;
        let is_refused = matches!(result, CallResult::Refusal(_));
        if is_last || is_refused || !root.extend(&recorder.recording())? {
            break result;
        }
    };
    if let CallResult::Refusal(refusal) = &result {
        if args.json {
            let none = [(); 0];
            printer.json(&json!({
                "tool": name, "outcome": result, "denials": none, "new_grants": none, "used_grants": none, "declared_needs": none,
                "steps": none, "warnings": none, "changes": none, "narrowing_sections": none,
            }))?;
        } else if let Refusal::InvalidArguments(faults) = refusal {
            argument_faults::print_faults(
                printer,
                &args.call,
                &config.hint,
                &arguments.text,
                faults,
            );
        } else {
            printer.error(refusal);
            printer.hint(refusal.hint());
        }
        return Ok(ExitStatus::Refusal);
    }
    let definition = tool.definition();
    let recorded = recorder.recording();
    let Changed { changes, requests, warnings } =
        changed::changed(&config, &chosen, &rights, &recorded, is_approved).await;
    let Learned { missing: mut asked, granted, denied, narrowed, unreachable: tried } =
        classify(&rights, definition, &recorded, &requests);
    let Hosts { private, is_unknown: names_host } =
        hosts(definition, &arguments.text, &recorded, &rights).await;
    private.values().for_each(|rule| asked.add_http(rule));
    let sections =
        sections(&config, (chosen.configured.map(|(name, _)| name), &name), tenant, &denied);
    let warnings: Vec<_> = asked.warnings().into_iter().chain(warnings).collect();
    let mut denials = std::mem::take(&mut *denials.lock());
    let is_granted = |request: Request<'_>| rights.allows(&request) == Decision::Allowed;
    denials.retain(|denial| !Request::parse(&denial.request).is_ok_and(is_granted));
    denials.extend(undeclared(&rights, &recorded));
    for denial in denials.iter_mut().filter(|denial| denial.layer == Layer::Component) {
        if let Some(rule) = private.get(&denial.request) {
            denial.grant = Some(Suggestion::of_rule(rule).lines().concat());
        }
    }
    let declared = components::needs(std::iter::once(definition));
    if args.json {
        let denied: Vec<_> = denials.iter().chain(tried.iter().map(|(_, denial)| denial)).collect();
        printer.json(&json!({
            "tool": name, "outcome": result, "denials": denied, "new_grants": asked.to_paste(), "used_grants": granted,
            "declared_needs": declared.lines(), "steps": grant_text::steps(&chosen, &asked), "warnings": warnings,
            "changes": changes.iter().map(Change::to_json).collect::<Vec<_>>(),
            "narrowing_sections": sections.iter().map(|(section, lines)| json!({ "section": section, "lines": lines })).collect::<Vec<_>>(),
        }))?;
        return Ok(ExitStatus::Ok);
    }
    warnings.iter().for_each(|warning| printer.warning(warning));
    let is_added = !(asked.is_empty() && changes.is_empty());
    if !is_added && sections.is_empty() {
        printer.note("the tool asked for nothing that needs a further grant");
    }
    if is_added {
        let shown = "the lines printed above";
        let Pasted { order, lines } = grant_text::pasted(&config, &chosen, &asked, &changes, shown);
        printer.text(&lines.join("\n"))?;
        printer.hint(format!("to allow this call, {order}; then:"));
        grant_text::steps(&chosen, &asked).iter().for_each(|step| printer.print_item("hint", step));
        let approve = config.hint.command("approve", &[], &[]);
        printer.print_item("hint", format!("approve the configuration: {approve}"));
        for (directory, _) in asked.directories() {
            let is_of = |(of, denial): &&(String, Denial)| {
                let path = denial.request.split_once(' ').map(|(_, path)| path);
                Path::new(of).starts_with(directory) && path != Some(directory)
            };
            let of = tried.iter().filter(is_of);
            let paths: Vec<_> = of.map(|(_, denial)| format!("`{}`", denial.request)).collect();
            let (shown, more) = paths.split_at(paths.len().min(MAX_PATHS));
            let shown = shown.join(", ");
            let more = match more.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            if !paths.is_empty() {
                printer.note(format!("`{directory}` is granted with all that it holds: the tool asked for {shown}{more}"));
            }
        }
    }
    let listed = |requests: BTreeSet<String>| Vec::from_iter(requests).join(", ");
    if !narrowed.is_empty() {
        let narrowed = listed(narrowed);
        printer
            .note(format!("granted to the component, and taken away from this call: {narrowed}"));
    }
    for (section, lines) in &sections {
        let lines = lines.join("\n");
        printer.hint(format!("[{section}] narrows this call; to allow it, write there:\n{lines}"));
    }
    if let (Some(approve), false, false) =
        (grant_text::approval(&config, &chosen), sections.is_empty(), is_added)
    {
        printer.hint(format!("after the change of the configuration, {approve}"));
    }
    if !granted.is_empty() {
        let is_used = if is_approved { "and used" } else { "but not approved, so not used" };
        printer.note(format!("already granted {is_used}: {}", listed(granted)));
    }
    if !is_approved && chosen.is_granted_anything() {
        let approve = config.hint.command("approve", &[], &[]);
        printer.hint(format!("{approve} shows the grants and asks for your approval"));
    }
    for denial in
        denials.iter().filter(|denial| matches!(denial.layer, Layer::Declaration | Layer::Host))
    {
        printer.note(format!("{denial}; {}", denial.hint()));
    }
    let declares_variables = definition.needs.iter().any(|need| need.kind == "environment");
    // CPython reads all variables when it starts, whatever the tool does.
    if recorded.environment && !is_python && !declares_variables {
        let message = "the tool read its environment variables, but declares none, and toolcell cannot see which ones it needs: ask its author";
        printer.note(message);
    }
    if names_host {
        printer.note("host names were not resolved: `toolcell explain` shows whether a host has a private address");
    }
    let unused = definition.needs.iter().filter(|need| !is_used(definition, need, &recorded));
    let unused: Vec<_> = unused
        .map(|need| format!("{} {} (its reason: {})", need.kind, need.pattern, need.reason))
        .collect();
    if !unused.is_empty() {
        printer.note(format!(
            "the tool also declares needs that this call did not use; the call works without a grant for them:\n{}",
            unused.join("\n")
        ));
    }
    if let Some(ending) = ending(&result) {
        printer.note(format!("the dry run failed ({ending}): a real run may need more grants"));
    }
    Ok(ExitStatus::Ok)
}

/// Returns the grants without the kinds that the tenant's section narrows. For those, stand-ins
/// answer.
fn without_narrowed(mut grants: Grants, overlay: &Overlay) -> Grants {
    if overlay.http.is_some() {
        grants.http.clear();
    }
    if overlay.paths.is_some() {
        grants.directories.clear();
    }
    if let Some(names) = &overlay.environment {
        grants.environment.retain(|name, _| names.contains(name));
    }
    grants
}

/// Facts about the hosts of the requests.
#[derive(Default)]
struct Hosts {
    /// The grant of a request to a host on a private network, by request.
    private: BTreeMap<String, HttpRule>,
    /// True if the name of a host was not looked up, or has no address.
    is_unknown: bool,
}

/// Resolves the hosts of the requests. A name that the tool computed can contain data that it read,
/// and a lookup would send that data away: only a name in the tool's definition or arguments is
/// looked up.
async fn hosts(
    definition: &Definition,
    arguments: &str,
    recorded: &Recording,
    rights: &Rights,
) -> Hosts {
    let mut hosts = Hosts::default();
    let egress = Egress::new();
    for request in &recorded.requests {
        let Request::Http { target, .. } = request else { continue };
        let Host::Name(name) = target.host() else { continue };
        let is_new = denial(rights, request).is_some_and(|denial| denial.layer == Layer::Component);
        if !is_new || name == "localhost" {
            continue;
        }
        if !advice::is_known(definition, arguments, &name) {
            hosts.is_unknown = true;
            continue;
        }
        match advice::private_rule(&egress, request).await {
            Some(Ok(rule)) => drop(hosts.private.insert(request.to_string(), rule)),
            Some(Err(())) => hosts.is_unknown = true,
            None => {}
        }
    }
    hosts
}

/// Returns the sections that narrow the call, each with the lists that allow the requests.
fn sections(
    config: &Config,
    (component, tool): (Option<&str>, &str),
    tenant: Option<&str>,
    denied: &[Request<'_>],
) -> Vec<(String, Vec<String>)> {
    let of_tool = component.map(|component| vec!["components", component, "tools", tool]);
    let of_tenant = tenant.map(|tenant| vec!["tenants", tenant]);
    let places = of_tool.into_iter().chain(of_tenant);
    let sections =
        places.map(|place| (place.join("."), grant_text::narrowed_lines(config, &place, denied)));
    sections.filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Returns true if the tool made a request that this need covers.
fn is_used(definition: &Definition, need: &Need, recorded: &Recording) -> bool {
    let mut alone = definition.clone();
    alone.needs = vec![need.clone()];
    let Ok(rights) = Rights::new(Arc::default(), &alone) else { return true };
    let is_within = |request: &Request<'_>| {
        denial(&rights, request).is_none_or(|denial| denial.layer != Layer::Declaration)
    };
    recorded.requests.iter().any(is_within)
        || recorded.paths.iter().any(|(path, used)| is_within(&use_of_file(path, used)))
        || recorded.environment && need.kind == "environment"
}

/// Returns a use of a path as a request.
fn use_of_file<'a>(path: &'a str, used: &PathUse) -> Request<'a> {
    Request::File { access: used.access, path: path.into() }
}

/// Returns the denial of a request, if it is denied.
fn denial(rights: &Rights, request: &Request<'_>) -> Option<Denial> {
    match rights.allows(request) {
        Decision::Denied(denial) => Some(denial),
        Decision::Allowed => None,
    }
}

/// Divides the requests of a tool into granted and denied ones. Requests whose rules are to be
/// changed are in neither set.
fn classify(
    rights: &Rights,
    definition: &Definition,
    recorded: &Recording,
    changed: &[Request<'_>],
) -> Learned {
    let mut learned = Learned::default();
    let mut tried = Vec::new();
    let mut judge = |request: &Request<'_>, add: &mut dyn FnMut(&mut Suggestion)| match rights
        .allows(request)
    {
        Decision::Allowed if changed.contains(request) => {}
        Decision::Allowed => drop(learned.granted.insert(request.to_string())),
        Decision::Denied(Denial { layer: Layer::Component, .. }) => {
            add(&mut learned.missing);
            learned.denied.extend(Request::parse(&request.to_string()));
        }
        Decision::Denied(Denial { layer: Layer::Tool | Layer::Tenant, .. }) => {
            learned.narrowed.insert(request.to_string());
            learned.denied.extend(Request::parse(&request.to_string()));
        }
        Decision::Denied(_) => {}
    };
    for request in &recorded.requests {
        judge(request, &mut |asked| {
            asked.add(request);
            // The destinations of a secret are those of the requests that contained it.
            if let Request::Secret { name } = request {
                match recorded.secrets.get(name.as_ref()) {
                    Some(places) => places.iter().for_each(|(method, target)| {
                        asked.add_secret(name, &HttpRule::smallest(*method, target))
                    }),
                    None => advice::add_secret(asked, definition, name),
                }
            }
        });
    }
    for (path, used) in
        recorded.paths.iter().filter(|(path, used)| *path != "/" || used.is_directory)
    {
        let request = use_of_file(path, used);
        let directory = directory_of(definition, path, *used);
        judge(&request, &mut |asked| asked.add_directory(directory, used.access));
        if let Some(mut denial) = grantable(rights, &request) {
            let mut grant = Suggestion::default();
            grant.add_directory(directory, used.access);
            denial.grant = Some(grant.lines().concat());
            tried.push((directory.to_owned(), denial));
        }
    }
    if recorded.environment {
        for need in definition.needs.iter().filter(|need| need.kind == "environment") {
            let request = Request::Environment { name: need.pattern.as_str().into() };
            judge(&request, &mut |asked| asked.add(&request));
            tried.extend(grantable(rights, &request).map(|denial| (need.pattern.clone(), denial)));
        }
    }
    Learned { unreachable: tried, ..learned }
}

/// Returns the denial of a request that the operator could allow.
fn grantable(rights: &Rights, request: &Request<'_>) -> Option<Denial> {
    denial(rights, request)
        .filter(|denial| matches!(denial.layer, Layer::Component | Layer::Tool | Layer::Tenant))
}

/// Returns a short description of a call's failure; none if it did not fail.
fn ending(result: &CallResult) -> Option<String> {
    match result {
        CallResult::Outcome(Outcome::Error(error)) => {
            Some(clean::note(&error.message).into_owned())
        }
        CallResult::ToolError(error) => Some(error.to_string()),
        CallResult::Outcome(_) | CallResult::Refusal(_) => None,
    }
}

/// Returns the denials of paths that the tool does not declare: a dry run has no events of them,
/// and no grant allows them. System paths are left out, because language runtimes look there.
fn undeclared(rights: &Rights, recorded: &Recording) -> impl Iterator<Item = Denial> {
    let paths = recorded.paths.iter().filter(|(path, _)| !live::is_of_system(path));
    let denials = paths.filter_map(move |(path, used)| denial(rights, &use_of_file(path, used)));
    denials.filter(|denial| denial.layer == Layer::Declaration).take(MAX_UNDECLARED)
}
