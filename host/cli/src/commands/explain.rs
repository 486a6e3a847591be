//! `toolcell explain`: tells if a tool may do something, which rule decides, and which grant would
//! allow it.
//!
//! [`explain`] takes a component, a tool and a request such as `GET https://example.com/x` or
//! `kv read a`. It loads the component without grants, computes the tool's rights, and prints
//! "allowed" or the denial, with the line of `toolcell.toml` that decides and the lines that would
//! allow the request. The decision comes from the functions that decide in a call; names of hosts
//! are looked up, because private networks need a grant of their own. It also reports other reasons
//! for which a call would fail: no such import, a secret without a value, no approval. The exit
//! status is 21 if the request is denied. `learn` uses [`find`] to load a tool.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use toolcell::grants::{
    Denial, GrantKind, InvalidRule, Layer, Method, Request, Rights, Suggestion,
};
use toolcell::http::Egress;
use toolcell::{CallContext, Component, Tool};

use crate::args::{ExplainArgs, target};
use crate::built::CURRENT_DIR;
use crate::components;
use crate::config::{self, Config, Problem, ResolvedComponent, SecretSelection};
use crate::grants::advice::{self, RequestOrigin};
use crate::grants::decision::{self, Answer};
use crate::grants::offered::NotOffered;
use crate::grants::rule_lines::Item;
use crate::grants::secrets;
use crate::grants::uses::{NO_IMPORT_TEXT, can_use};
use crate::host::{self, Cli, Engines};
use crate::print::{ExitStatus, Failure, Printer, Result};

/// Runs the command: decides about the request and prints the decision, its rule and the remedy.
pub(crate) async fn explain(cli: &Cli, args: &ExplainArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    let config = cli.config(SecretSelection::None)?;
    let Some((component, tool, request)) = args.words() else { return Err(missing(&config, &[])) };
    let request = Request::parse(&request)
        .map_err(|bad| unreadable(&config, (&component, tool.as_deref(), &request), &bad))?;
    let context = config::for_tenant(&config, CallContext::default(), args.tenant.as_deref())?;
    let tenant = context.tenant.as_deref();
    let engines = host::engines(cli, 1, &config)?;
    let FoundTool { chosen, component, tool } = find(&engines, &component, tool.as_deref()).await?;
    let definition = tool.definition();
    let name = definition.name.as_str();
    let called = if let Request::Invoke { tool, .. } = &request { Some(&**tool) } else { None };
    let reached = std::iter::once(name).chain(called);
    if let Some(unreached) = NotOffered::first_not_offered(&config, tenant, reached) {
        if args.json {
            let (denial, decided_by) = unreached.to_json(&request);
            printer.json(&json!({
                "tool": name, "request": request.to_string(), "allowed": false,
                "usable": can_use(component.inspection(), request.kind()), "denial": denial, "decided_by": decided_by,
                "unset_secrets": [],
            }))?;
        } else {
            printer.text(&unreached.sentence())?;
            printer.hint(unreached.hint());
        }
        return Ok(ExitStatus::Refusal);
    }
    // The rights come from the tool's needs and the file's grants, also for a component that could
    // not be loaded with these grants.
    let rights = tool.rights().cloned().unwrap_or_default().with_granted(chosen.grants().into());
    let overlay = tenant.and_then(|tenant| config.tenants.get(tenant)?.tenant.overlay.clone());
    let rights = rights.narrowed(overlay, None);
    let asker =
        RequestOrigin { config: &config, chosen: &chosen, tenant, definition, rights: &rights };
    let egress = Egress::new();
    let mut answer = decision::decided_by(&egress, &rights, &request).await;
    if let Answer::Denied(denial @ Denial { layer: Layer::Component, .. }) = &mut answer
        && let Some(Ok(rule)) = advice::private_rule(&egress, &request).await
    {
        denial.grant = Some(Suggestion::of_rule(&rule).lines().concat());
    }
    let is_usable = can_use(component.inspection(), request.kind());
    let rule = asker.deciding_rule(&request, &answer);
    let file = config.file.as_deref().unwrap_or_default();
    let is_allowed = matches!(answer, Answer::Allowed | Answer::Unresolved(_));
    let origin = if let (true, Request::Secret { name } | Request::Reveal { name }) =
        (is_allowed, &request)
    {
        config.origin(tenant, name).map(|origin| (name, origin))
    } else {
        None
    };
    let unset = if is_allowed { unset_secrets(cli, &rights, tenant)? } else { BTreeMap::new() };
    // A request can be allowed although the component cannot be called.
    let unusable =
        is_allowed.then(|| components::ungranted(&config, &chosen, &component)).flatten();
    let status = match &unusable {
        Some(failure) => failure.status,
        None if is_allowed => ExitStatus::Ok,
        None => ExitStatus::Refusal,
    };
    if args.json {
        let covering = rule.as_ref().map_or_else(|| request.to_string(), |rule| rule.text.clone());
        let mut shown = json!({
            "tool": name, "request": request.to_string(), "allowed": is_allowed, "usable": is_usable, "denial": null,
            "decided_by": rule.map(|rule| json!({ "file": file, "line": rule.line, "rule": rule.text })),
            "unset_secrets": unset.iter().map(|(name, problem)| json!({ "name": name, "problem": problem })).collect::<Vec<_>>(),
        });
        if let Some((_, origin)) = &origin {
            shown["source"] = json!(origin.to_string());
        }
        if let Some(failure) = &unusable {
            shown["error"] = failure.to_json();
        }
        match answer {
            Answer::Denied(denial) => shown["denial"] = json!(denial),
            Answer::Private(networks) => {
                let rule = decision::with_private(&rights, &covering, &networks);
                let grant = format!("http = [{rule}]");
                shown["denial"] =
                    json!({ "layer": "network", "request": request.to_string(), "grant": grant });
                shown["private_networks"] = json!(networks);
            }
            Answer::Allowed | Answer::Unresolved(_) => {}
        }
        printer.json(&shown)?;
        return Ok(status);
    }
    let by = |before: &str, after: &str| match &rule {
        Some(Item { text, line, .. }) => format!("{before}`{text}` (`{file}`, line {line}){after}"),
        None => String::new(),
    };
    match &answer {
        Answer::Allowed | Answer::Unresolved(_) => {
            printer.text(&format!("allowed{}", by(" by ", "")))?;
        }
        Answer::Denied(denial) => {
            printer.text(&format!("{denial}{}", by(", by ", "")))?;
            // A grant does not help a component that cannot make the request.
            if is_usable {
                let denials = std::slice::from_ref(denial);
                asker.remedy(denials, |_| true, Some(&component)).await.print(printer);
            }
        }
        Answer::Private(networks) => {
            let by = by("; the rule ", " names no such network");
            printer
                .text(&format!("`{request}` is denied: its host is on a private network{by}"))?;
            if is_usable {
                asker.allow_private(&request, networks).print(printer);
            }
        }
    }
    if !is_usable {
        printer
            .note(format!("no call can make this request, whatever is granted: {NO_IMPORT_TEXT}"));
    } else if let Answer::Unresolved(problem) = &answer {
        printer.note(format!("a call would fail now: {problem}"));
    }
    if let Some((name, origin)) = &origin {
        printer.note(format!("the value of `{name}` comes from {origin}"));
    }
    for problem in unset.values() {
        printer.warning(secrets::problem_text(problem, &[name]));
        printer.hint(&problem.hint);
    }
    if is_allowed {
        unapproved(printer, &config, &chosen, &component)?;
    }
    if let Some(failure) = unusable {
        printer.failure(&failure.about(chosen.display_path()));
    }
    Ok(status)
}

/// Returns the secrets without a usable value that the tool may use; its calls are refused. The
/// values are read after the component was asked for its tools, so that no guest code runs while
/// they are in memory.
fn unset_secrets(
    cli: &Cli,
    rights: &Rights,
    tenant: Option<&str>,
) -> Result<BTreeMap<String, Problem>> {
    let names = rights.granted().secret_names(None);
    let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let config = cli.config(SecretSelection::Only { names, tenant: tenant.map(str::to_owned) })?;
    let unset = config.unset_of(rights, tenant);
    Ok(unset.map(|(name, problem)| (name.clone(), problem.clone())).collect())
}

/// Lists the forms of a request, for hints. Those of HTTP come first.
fn forms() -> String {
    let forms = GrantKind::listed(|row| row.requests.iter().copied());
    format!("a request is {}", forms.replacen(',', " or another method,", 1))
}

/// Returns the error of a last word that is not a request. A word without a space is probably a
/// component or a tool.
fn unreadable(
    config: &Config,
    (component, tool, word): (&Path, Option<&str>, &str),
    bad: &InvalidRule,
) -> Failure {
    let capitals = word
        .trim()
        .split_once(' ')
        .map(|(method, rest)| format!("{} {rest}", method.to_ascii_uppercase()));
    if let Some(capitals) = capitals.filter(|capitals| Request::parse(capitals).is_ok()) {
        let hint = format!("did you mean {}?", config::quoted(&capitals));
        return Failure::usage(bad.to_string(), hint);
    }
    if word.trim().contains(' ') {
        return Failure::usage(bad.to_string(), format!("{}, in quotes for the shell", forms()));
    }
    let mut words: Vec<_> =
        [Some(component.to_string_lossy()), tool.map(Into::into)].into_iter().flatten().collect();
    words.retain(|word| word != CURRENT_DIR);
    words.push(word.into());
    missing(config, &words.iter().map(|word| &**word).collect::<Vec<_>>())
}

/// Returns the error of a command line without a request.
fn missing(config: &Config, words: &[&str]) -> Failure {
    // Only the beginning of a request was typed.
    let is_begun = |word: &&str| {
        let word = word.trim();
        // The kind may be in front of a URL or a path, but need not be.
        let is_kind = !["http", "filesystem"].contains(&word) && GrantKind::of_need(word).is_some();
        let is_access = ["read", "write"].contains(&word) || Method::parse(word).is_some();
        word.is_empty() || is_kind || is_access
    };
    if let Some(begun) = words.last().filter(|word| is_begun(word)) {
        let message = format!("the request `{}` is not whole", begun.escape_debug());
        return Failure::usage(message, format!("{}, in quotes for the shell", forms()));
    }
    let after =
        words.last().map(|word| format!(" after `{}`", word.escape_debug())).unwrap_or_default();
    // A URL alone: its method was left out.
    let got =
        words.last().map(|word| format!("GET {word}")).filter(|got| Request::parse(got).is_ok());
    let (before, request) = match &got {
        Some(got) => (&words[..words.len() - 1], &**got),
        None => (words, "GET https://example.com/x"),
    };
    let named = config.components.keys().next().cloned();
    let named = named.or_else(components::file_here).filter(|_| before.is_empty());
    let before = [named.as_deref().as_slice(), before].concat();
    let example = config.hint.command("explain", &[], &[&before[..], &[request]].concat());
    let hint = format!("{}; for instance {example}", forms());
    Failure::usage(format!("the request is missing{after}"), hint)
}

/// Prints a note if calls are refused because the component is not approved, whatever the decision.
fn unapproved(
    printer: &Printer,
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    component: &Component,
) -> Result<()> {
    let (_, signer) = chosen.bytes()?;
    if chosen.development().is_none()
        && !components::is_approved(config, chosen, component, signer.as_ref())?
    {
        let approve = config.hint.command("approve", &[], &[]);
        printer.note(format!(
            "a call is refused until the component is approved: {approve} shows it and asks for your approval"
        ));
    }
    Ok(())
}

/// A tool, and the component that offers it.
pub(crate) struct FoundTool<'a> {
    pub(crate) chosen: ResolvedComponent<'a>,
    pub(crate) component: Component,
    pub(crate) tool: Tool,
}

/// Returns the component's tool of this name, or its only tool. Missing grants do not matter here.
pub(crate) async fn find<'a>(
    engines: &Engines<'a>,
    component: &Path,
    tool: Option<&str>,
) -> Result<FoundTool<'a>> {
    let chosen = components::choose(engines.config, component)?;
    let (bytes, _) = chosen.bytes()?;
    let component = components::load_without_grants(engines, bytes, &chosen).await?;
    let tool = target::tool(component.tools(), tool, &chosen.display_path())?.clone();
    Ok(FoundTool { chosen, component, tool })
}
