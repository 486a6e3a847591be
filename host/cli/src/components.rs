//! Components by name or by file, and the tools of several as one set.
//!
//! Invariants: a name stands for one tool; where two components offer it, both files are named and neither is used. Who is
//! refused for want of a grant is told the lines to add, and where.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::anyhow;
use toolcell::defence::{Defence, stands};
use toolcell::{Access, Component, Examination, Grants, Missing, Suggestion, Tool, names, toml_text};

use crate::config::{self, Approved, Chosen, Config, Configured, Lock, Section};
use crate::difference::{Difference, Standing};
use crate::failure::Failure;
use crate::files;
use crate::host::{self, Engines};
use crate::printer::Printer;
use crate::signature::Signer;

/// The bytes of a component that is signed and pinned as it has to be, and who signed it if somebody has to.
pub(crate) fn bytes(chosen: &Chosen<'_>) -> Result<(Vec<u8>, Option<Signer>), Failure> {
    let bytes = files::component(&chosen.path)?;
    // The signature first: of a stranger's bytes nothing is parsed before.
    let signer = signer(chosen, &bytes)?;
    pinned(chosen, &bytes)?;
    Ok((bytes, signer))
}

/// Who signed it, if somebody has to.
fn signer(chosen: &Chosen<'_>, bytes: &[u8]) -> Result<Option<Signer>, Failure> {
    match chosen.demand.map(|demand| demand.signer(&chosen.path, bytes)).transpose() {
        Err(failure) if stands(Defence::Signature) => Err(failure),
        judged => Ok(judged.unwrap_or_default()),
    }
}

fn pinned(chosen: &Chosen<'_>, bytes: &[u8]) -> Result<(), Failure> {
    if let Some((digest, problem)) = chosen.configured.and_then(|(_, configured)| configured.digest.as_ref()) {
        let found = Examination::of(bytes).map_err(|error| Failure::from(error).about(chosen.shown()))?.digest;
        if found != *digest && stands(Defence::Pins) {
            let mut problem = problem.clone();
            problem.message = format!("{}: {} has {found}", problem.message, chosen.shown());
            let file = problem.file.clone();
            return Err(Failure::config(&file, vec![problem]));
        }
    }
    Ok(())
}

/// The component under its grants, and who signed it if somebody has to.
pub(crate) async fn one(
    printer: &Printer,
    engines: &Engines<'_>,
    config: &Config,
    chosen: &Chosen<'_>,
) -> Result<(Component, Option<Signer>), Failure> {
    let (bytes, signer) = bytes(chosen)?;
    let loaded = loaded(printer, engines, config, chosen, bytes).await;
    loaded.map(|component| (component, signer)).map_err(|failure| failure.about(chosen.shown()))
}

/// The component to be used by itself, as it was approved.
pub(crate) async fn alone(
    printer: &Printer,
    engines: &Engines<'_>,
    config: &Config,
    chosen: &Chosen<'_>,
) -> Result<Component, Failure> {
    let (vetted, lock) = (bytes(chosen)?, Lock::beside(config)?);
    let component = approved(printer, engines, config, &lock, chosen, vetted).await;
    component.map_err(|failure| failure.about(chosen.shown()))
}

/// The component of these bytes under its grants, to be used: as it was approved, if a configuration names it.
pub(crate) async fn approved(
    printer: &Printer,
    engines: &Engines<'_>,
    config: &Config,
    lock: &Lock,
    chosen: &Chosen<'_>,
    (bytes, signer): (Vec<u8>, Option<Signer>),
) -> Result<Component, Failure> {
    let Some((name, _)) = chosen.configured else { return loaded(printer, engines, config, chosen, bytes).await };
    let approve = config.again.command("approve", &[], &[name]);
    let hint = format!("{approve} shows it and asks");
    let Some(old) = lock.components.get(name) else {
        if !stands(Defence::Approval) {
            return loaded(printer, engines, config, chosen, bytes).await;
        }
        return Err(Failure::not_approved(format!("the component `{name}` is not approved yet"), hint));
    };
    let changed = |difference: &Difference<'_>| {
        let sentence = difference.sentence();
        Failure::not_approved(format!("the component `{name}` is not the one that was approved: {sentence}"), &hint)
    };
    // Its imports are seen from outside: what came to them is refused before it is compiled.
    let seen = Examination::of(&bytes)?;
    let imports = seen.imports.into_iter().map(|(name, _)| name).collect();
    let publisher =
        if stands(Defence::ApprovedPublisher) { signer.map(|signer| signer.publisher) } else { old.publisher.clone() };
    let new = Approved { imports, digest: seen.digest, publisher: publisher.clone(), tools: old.tools.clone() };
    let difference = Difference { old: Some(old), new: &new };
    // So is its code. What reaches nothing can do no more harm than before; what was given something was given it as it was.
    let is_other = match difference.standing() {
        Standing::Changed => stands(Defence::ApprovedImports),
        Standing::Rebuilt => chosen.is_granted_anything() && stands(Defence::ApprovedCode),
        Standing::Locked | Standing::New => false,
    };
    if is_other {
        return Err(changed(&difference));
    }
    let component = loaded(printer, engines, config, chosen, bytes).await?;
    let new = Approved::of(&component, publisher);
    let difference = Difference { old: Some(old), new: &new };
    match difference.standing() {
        Standing::Locked => {}
        Standing::Rebuilt => {
            let message =
                format!("the component `{name}` has other code than was approved, with the same tools and imports");
            printer.note("warning", &message);
            printer
                .note("hint", &format!("{approve} writes it down; `digest` in `[components.{name}]` would refuse it"));
        }
        Standing::Changed | Standing::New if stands(Defence::ApprovedDefinitions) => return Err(changed(&difference)),
        Standing::Changed | Standing::New => {}
    }
    Ok(component)
}

/// The component of these bytes under its grants.
pub(crate) async fn loaded(
    printer: &Printer,
    engines: &Engines<'_>,
    config: &Config,
    chosen: &Chosen<'_>,
    bytes: Vec<u8>,
) -> Result<Component, Failure> {
    if let (true, Some(file)) = (chosen.is_surprise, &config.file) {
        printer.note("note", &format!("{} has the grants that `{file}` gives it", chosen.shown()));
    }
    let (engine, grants) = (engines.of(chosen.isolation)?, chosen.grants());
    if let (Some(written), false) = (grants.directories.iter().find(|dir| dir.access == Access::Write), engines.counts)
    {
        let message =
            anyhow!("no place for the usage count of `{}`: neither `XDG_STATE_HOME` nor `HOME` is set", written.name);
        return Err(Failure::file(
            message,
            "pass `--state-dir DIR`: commands that share it share the directory's quota",
        ));
    }
    let loaded = host::load(printer, engine, bytes.clone(), &chosen.path, grants, Missing::Refused).await;
    match loaded {
        Ok(component) => {
            chosen
                .check_tools(component.definitions().map(|tool| tool.name.as_str()).collect::<Vec<_>>().into_iter())?;
            Ok(component)
        }
        Err(error) if error.is_not_granted() => {
            let needs = freely(printer, engines, bytes, chosen).await.map(|component| needs(&component));
            let failure = Failure::from(error);
            Err(match needs {
                Ok(needs) if needs.is_empty() => {
                    let learn = config.again.command("learn", &["--component", &chosen.word()], &["TOOL", "ARGS"]);
                    failure.with_hint(format!("it does not declare what it needs: {learn} shows what it asks for"))
                }
                Ok(needs) => failure.with_hint(advice(config, chosen, &needs)),
                Err(_) => failure,
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// The component with everything denied at its use: to look at it, or to learn what it asks for.
pub(crate) async fn freely(
    printer: &Printer,
    engines: &Engines<'_>,
    bytes: Vec<u8>,
    chosen: &Chosen<'_>,
) -> Result<Component, Failure> {
    let engine = engines.of(chosen.isolation)?;
    let loaded = host::load(printer, engine, bytes, &chosen.path, Grants::default(), Missing::Denied).await;
    loaded.map_err(|error| Failure::from(error).about(chosen.shown()))
}

/// What the tools of a component declare that they need.
fn needs(component: &Component) -> Suggestion {
    let mut suggestion = Suggestion::default();
    component.definitions().flat_map(|tool| &tool.needs).for_each(|need| suggestion.add_need(need));
    suggestion
}

/// Lines to add, and where: into the component's section, or with a section of its own.
pub(crate) fn advice(config: &Config, chosen: &Chosen<'_>, suggestion: &Suggestion) -> String {
    let lines = suggestion.lines().join("\n");
    let file = config.file.as_deref().unwrap_or(config::NAME);
    match chosen.configured {
        Some((name, Configured { section: Section { line, has_grants: true }, .. })) => {
            format!("to allow it, add to [components.{name}.grants] in `{file}`, line {line}:\n{lines}")
        }
        Some((name, Configured { section: Section { line, has_grants: false }, .. })) => {
            format!("to allow it, add to `{file}`, whose line {line} is about it:\n{}", section(name, &lines))
        }
        None => {
            let name: String =
                chosen.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let name: String =
                name.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).take(64).collect();
            let name = if name.is_empty() { "NAME" } else { &name };
            let path = toml_text(&chosen.shown());
            format!("to allow it, add to `{file}`:\n[components.{name}]\npath = {path}\n{}", section(name, &lines))
        }
    }
}

fn section(name: &str, lines: &str) -> String {
    format!("[components.{name}.grants]\n{lines}")
}

/// The components that words stand for, to be used.
pub(crate) fn chosen<'a>(config: &'a Config, words: &[PathBuf]) -> Result<Vec<Chosen<'a>>, Failure> {
    words.iter().map(|word| config.used(word)).collect()
}

/// The tools of several components, to be used, as they were typed and then in each component's own order.
pub(crate) async fn tools(
    printer: &Printer,
    engines: &Engines<'_>,
    config: &Config,
    components: &[Chosen<'_>],
) -> Result<Vec<Tool>, Failure> {
    let lock = Lock::beside(config)?;
    let mut tools = Vec::<Tool>::new();
    let mut homes = HashMap::new();
    for chosen in components {
        let component = approved(printer, engines, config, &lock, chosen, bytes(chosen)?).await;
        for tool in component.map_err(|failure| failure.about(chosen.shown()))?.tools() {
            let name = &tool.definition().name;
            if let Some(first) = homes.insert(name.clone(), chosen.shown()) {
                return Err(twice(name, &first, &chosen.shown()));
            }
            tools.push(tool.clone().with_limits(chosen.limits_of(name)));
        }
    }
    match names::look_alike(tools.iter().map(|tool| tool.definition().name.as_str())) {
        Some((tool, other)) if stands(Defence::LookAlikes) => {
            let place = |name: &str| homes.get(name).cloned().unwrap_or_default();
            let message = anyhow!("`{tool}` of `{}` is taken for `{other}` of `{}`", place(tool), place(other));
            Err(Failure::file(message, "leave one of them out: a model would call the one for the other"))
        }
        Some(_) | None => Ok(tools),
    }
}

fn twice(tool: &str, first: &str, second: &str) -> Failure {
    let message = if first == second {
        anyhow!("`{first}` stands twice in the list of components")
    } else {
        anyhow!("`{first}` and `{second}` both offer a tool `{tool}`")
    };
    Failure::file(message, "leave one of them out: a call names its tool, not the file")
}
