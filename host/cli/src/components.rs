//! Components by name or by file, and the tools of several as one set.
//!
//! Invariants: a name stands for one tool; where two components offer it, both files are named and neither is used. Who is
//! refused for want of a grant is told the lines to add, and where.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::anyhow;
use toolcell::defence::{Defence, stands};
use toolcell::{Access, Component, Definition, Examination, Grants, Missing, Suggestion, Tool, names};

use crate::config::{Approval, Approved, Chosen, Config, Lock};
use crate::difference::{Difference, Standing};
use crate::failure::Failure;
use crate::files;
use crate::grant_text;
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

/// Whether a component can be used now: the configuration is approved, and the component is as it was approved.
pub(crate) fn is_approved(
    config: &Config,
    chosen: &Chosen<'_>,
    component: &Component,
    signer: Option<&Signer>,
) -> Result<bool, Failure> {
    let Some((name, _)) = chosen.configured else { return Ok(true) };
    if config.approval == Approval::Missing {
        return Ok(false);
    }
    let now = Approved::of(component, signer.map(|signer| signer.publisher.clone()));
    let lock = Lock::beside(config)?;
    Ok(Difference { old: lock.components.get(name), new: &now }.standing() == Standing::Locked)
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
    let Some((name, configured)) = chosen.configured else {
        return loaded(printer, engines, config, chosen, bytes).await;
    };
    if let Some(development) = &configured.development {
        printer
            .note("warning", &format!("development mode: {} is used without approval, {development}", chosen.shown()));
        return loaded(printer, engines, config, chosen, bytes).await;
    }
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
            printer.note(
                "hint",
                &format!("{approve} records the new code; `digest` in `[components.{name}]` makes other code an error"),
            );
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
        printer.note(
            "note",
            &format!(
                "{} was named by its path, and `{file}` configures it: the grants of `{file}` apply",
                chosen.shown()
            ),
        );
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
            let free = freely(printer, engines, bytes, chosen).await;
            let failure = Failure::from(error);
            Err(match free {
                Ok(component) => failure.with_hint(how_to_grant(config, chosen, &component)),
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
    let loaded = granted(printer, engines, bytes, chosen, Grants::default()).await;
    loaded.map_err(|failure| failure.about(chosen.shown()))
}

/// The component under other grants than the configuration's. What it imports beyond them is denied at its use.
pub(crate) async fn granted(
    printer: &Printer,
    engines: &Engines<'_>,
    bytes: Vec<u8>,
    chosen: &Chosen<'_>,
    grants: Grants,
) -> Result<Component, Failure> {
    let engine = engines.of(chosen.isolation)?;
    Ok(host::load(printer, engine, bytes, &chosen.path, grants, Missing::Denied).await?)
}

/// What a person can do about imports that are not granted: grant what its tools declare, or find out what they need.
pub(crate) fn how_to_grant(config: &Config, chosen: &Chosen<'_>, component: &Component) -> String {
    let needs = needs(component.definitions());
    if needs.is_empty() {
        let learn = learn_command(config, chosen, "TOOL");
        return format!("it does not declare what it needs: {learn} shows what a call asks for");
    }
    grant_text::advice(config, chosen, &needs)
}

/// The command that shows what a call of a tool asks for.
pub(crate) fn learn_command(config: &Config, chosen: &Chosen<'_>, tool: &str) -> String {
    config.again.command("learn", &[], &[&chosen.word(), tool, "ARGS"])
}

/// What tools declare that they need.
pub(crate) fn needs<'a>(definitions: impl Iterator<Item = &'a Definition>) -> Suggestion {
    let mut suggestion = Suggestion::default();
    definitions.flat_map(|tool| &tool.needs).for_each(|need| suggestion.add_need(need));
    suggestion
}

/// What was typed for components: all that the configuration names where nothing was.
///
/// # Errors
/// There are none.
pub(crate) fn typed(config: &Config, words: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if !words.is_empty() {
        return Ok(words.to_vec());
    }
    const HINT: &str = "name a component by its file, or write a `toolcell.toml` that names components";
    match &config.file {
        Some(_) if !config.components.is_empty() => Ok(config.components.keys().map(PathBuf::from).collect()),
        Some(file) => Err(Failure::usage(format!("`{file}` names no component"), HINT)),
        None => Err(config.missing(HINT)),
    }
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
            for (secret, problem) in tool.rights().into_iter().flat_map(|rights| config.unset_of(rights)) {
                printer.note("warning", &format!("{problem}; calls of `{name}`, which may use `{secret}`, fail"));
                printer.note("hint", &problem.hint);
            }
            tools.push(config.stopped(tool.clone().with_limits(chosen.limits_of(name))));
        }
    }
    match names::look_alike(tools.iter().map(|tool| tool.definition().name.as_str())) {
        Some((tool, other)) if stands(Defence::LookAlikes) => {
            let place = |name: &str| homes.get(name).cloned().unwrap_or_default();
            let message = anyhow!("`{tool}` of `{}` looks like `{other}` of `{}`", place(tool), place(other));
            Err(Failure::file(message, "leave one of them out: a model could call one for the other"))
        }
        Some(_) | None => Ok(tools),
    }
}

fn twice(tool: &str, first: &str, second: &str) -> Failure {
    let message = if first == second {
        anyhow!("`{first}` is named twice")
    } else {
        anyhow!("`{first}` and `{second}` both offer a tool `{tool}`")
    };
    Failure::file(message, "leave one of them out: a call names its tool, not the file")
}
