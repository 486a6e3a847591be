//! Converts grants in the file to [`Grants`] and [`Overlay`].
//!
//! Grants are the access that an operator gives a component; an overlay narrows them for a tenant
//! or for one tool. Reading a configuration calls `grants` for each component's section and
//! `overlay` for each section of a tool or tenant. Both parse the rules and return the library's
//! types. A value that cannot be parsed, or that would be ambiguous, is a problem with file, line
//! and column, and grants nothing. Rules that allow nothing, such as one for a private network that
//! it does not name, are warnings.
//!
//! Not here: the directories that may be granted, in `paths/roots.rs`; the values of secrets, in
//! `file/secrets.rs`.

pub mod effective;
pub(crate) mod limits;
pub(crate) mod rules;
pub(crate) mod typed_grants;

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use toolcell::grants::{
    Directory, DirectoryQuota, GrantKind, HttpRule, Injection, InvalidRule, SecretGrant,
    Suggestion, has_metadata_service,
};
use toolcell::{Grants, Overlay};

use crate::paths::roots::Guarded;
use crate::problem::Problems;
use crate::schema::{self, At, Either};
use crate::text::units::{Count, Size};
use limits::amount;

pub use limits::unusual;
pub use rules::{ConfiguredRule, RuleSection};

/// The tool's name for the scratch directory of a call.
const SCRATCH: &str = "/scratch";

/// Returns the grants of a component.
pub(crate) fn grants(
    problems: &mut Problems<'_>,
    said: &schema::Grants,
    base: &Path,
    guarded: &Guarded,
    component: &str,
) -> Grants {
    let mut grants = Grants::default();
    // A new version of the component keeps using the keys of the last one.
    grants.store = Some(component.to_owned());
    let rules: Vec<_> =
        said.http.iter().filter_map(|line| Some((&line.span, http(problems, line)?))).collect();
    without_network(problems, &rules);
    grants.http.extend(rules.into_iter().map(|(_, rule)| rule));
    directories(problems, said, base, guarded, &mut grants);
    match &said.scratch {
        None | Some(Either::Short(false)) => {}
        Some(Either::Short(true)) => grants.scratch = Some(DirectoryQuota::default()),
        Some(Either::Table(schema::DirectoryQuota { max_bytes, max_files })) => {
            grants.scratch =
                Some(directory_quota(problems, max_bytes.as_ref(), max_files.as_ref()));
        }
    }
    for (name, value) in &said.environment {
        if name.is_empty() || name.contains(['=', '\0']) {
            problems.error(
                &value.span,
                format!(
                    "`{}` is not a name that an environment variable can have",
                    name.escape_debug()
                ),
                "write NAME = \"value\"",
            );
        } else if value.value == Suggestion::PLACEHOLDER {
            problems.error(
                &value.span,
                format!("the value of the variable `{name}` is still the placeholder `…`"),
                "write the value of the variable in place of `…`",
            );
        } else {
            grants.environment.insert(name.clone(), value.value.clone());
        }
    }
    for (name, use_) in &said.secrets {
        if let Some(bound) = secret(problems, name, use_, said, &grants) {
            grants.secrets.insert(name.clone(), bound);
        }
    }
    for (kind, rule) in said.lists() {
        if kind == GrantKind::Reveal && !said.secrets.contains_key(&rule.value) {
            let message = format!(
                "`{}` names the secret `{}`, but `secrets` does not have it",
                kind.key(),
                rule.value.escape_debug()
            );
            let hint =
                "say where its value is: secrets = { NAME = { source = { env = \"VARIABLE\" } } }";
            problems.error(&rule.span, message, hint);
        } else if let Err(bad) = grants.add(kind, &rule.value) {
            invalid_rule(problems, rule, bad);
        }
    }
    grants
}

/// Parses a rule. If that fails, adds an error and returns `None`.
fn parsed_rule<T: FromStr<Err = InvalidRule>>(
    problems: &mut Problems<'_>,
    text: &At<String>,
) -> Option<T> {
    text.value.parse().map_err(|bad| invalid_rule(problems, text, bad)).ok()
}

fn invalid_rule(problems: &mut Problems<'_>, text: &At<String>, bad: InvalidRule) {
    if text.value == Suggestion::PLACEHOLDER {
        let message = format!("the rule is still the placeholder `{}`", Suggestion::PLACEHOLDER);
        problems.error(&text.span, message, format!("in its place, {}", bad.hint));
    } else {
        problems.error(&text.span, bad.to_string(), bad.hint);
    }
}

fn http(
    problems: &mut Problems<'_>,
    line: &At<Either<String, schema::HttpTable>>,
) -> Option<HttpRule> {
    match &line.value {
        Either::Short(rule) => {
            parsed_rule(problems, &At { value: rule.clone(), span: line.span.clone() })
        }
        Either::Table(schema::HttpTable { rule, private_networks }) => {
            let mut networks = Vec::new();
            for network in private_networks {
                match network.value.parse() {
                    Ok(parsed) => {
                        if has_metadata_service(&parsed) {
                            let message = format!(
                                "the network `{parsed}` has the address of a metadata service in it, which serves the \
                                 credentials of this machine in most clouds"
                            );
                            let hint = "name the smallest network that the tool needs, such as `10.1.2.3/32`";
                            problems.warning(&network.span, message, hint);
                        }
                        networks.push(parsed);
                    }
                    Err(_) => {
                        let message =
                            format!("`{}` is not a network", network.value.escape_debug());
                        problems.error(
                            &network.span,
                            message,
                            "write an address and a prefix length: `127.0.0.1/32`",
                        );
                    }
                }
            }
            parsed_rule::<HttpRule>(problems, rule).map(|rule| rule.with_private(networks))
        }
    }
}

/// Warns about rules that allow nothing, because all their requests go to private addresses and no
/// rule of the same host names the network.
fn without_network(problems: &mut Problems<'_>, rules: &[(&Range<usize>, HttpRule)]) {
    let places: Vec<_> = rules.iter().map(|(_, rule)| without_methods(rule)).collect();
    for ((span, rule), place) in rules.iter().zip(&places) {
        let networks = rule.missing_private();
        let named = |((_, other), wide): (&(&Range<usize>, HttpRule), &String)| {
            !other.private().is_empty()
                && place.starts_with(wide.as_str())
                && other.missing_private().is_empty()
        };
        if networks.is_empty() || rules.iter().zip(&places).any(named) {
            continue;
        }
        let message = format!(
            "the rule `{rule}` has no effect: its host is on a private network, which the rule does not name"
        );
        let rule = Suggestion::of_rule(rule).additions();
        let rule = rule.iter().flat_map(|(_, items)| items).cloned().collect::<String>();
        problems.warning(span, message, format!("write it as {rule}"));
    }
}

/// Returns the rule without its methods.
fn without_methods(rule: &HttpRule) -> String {
    let text = rule.to_string();
    text.split_once(' ').map_or_else(|| text.clone(), |(_, place)| place.to_owned())
}

fn directory_quota(
    problems: &mut Problems<'_>,
    bytes: Option<&At<schema::Amount>>,
    files: Option<&At<schema::Amount>>,
) -> DirectoryQuota {
    let mut quota = DirectoryQuota::default();
    if let Some(Size(bytes)) = amount(problems, bytes) {
        quota.bytes = bytes;
    }
    if let Some(Count(files)) = amount(problems, files) {
        quota.files = files;
    }
    quota
}

fn directories(
    problems: &mut Problems<'_>,
    said: &schema::Grants,
    base: &Path,
    guarded: &Guarded,
    grants: &mut Grants,
) {
    for At { value: directory, .. } in &said.directories {
        let schema::Directory { name, path, access, max_bytes, max_files } = directory;
        let quota = directory_quota(problems, max_bytes.as_ref(), max_files.as_ref());
        let led = match guarded.resolve(base, &path.value, *access) {
            Ok(led) => led,
            Err((problem, hint)) => {
                problems.error(&path.span, problem, hint);
                continue;
            }
        };
        let made = match Directory::new(name.value.as_str(), led, *access) {
            Ok(made) => made.with_quota(quota),
            Err(bad) => {
                problems.error(&name.span, bad.to_string(), bad.hint);
                continue;
            }
        };
        if said.scratch.is_some() && nested(Path::new(&made.name), Path::new(SCRATCH)) {
            let message = format!("the tool's directories `{}` and `{SCRATCH}` overlap", made.name);
            problems.error(
                &name.span,
                message,
                "give the directory another name, for instance `/data`",
            );
        }
        for other in &grants.directories {
            if let Some((message, hint)) = clash(other, &made) {
                problems.error(&name.span, message, hint);
            }
        }
        grants.directories.push(made);
    }
}

/// Returns the reason why two directories cannot both be granted.
fn clash(first: &Directory, second: &Directory) -> Option<(String, &'static str)> {
    if first.name == second.name {
        return Some((
            format!("two directories are granted under the same name `{}`", second.name),
            "give each its own name: the name is the path that the tool sees",
        ));
    }
    if first.access == second.access {
        return None;
    }
    let (read, write) = (&first.name, &second.name);
    let hint = "give both the same access, or use two separate directories";
    if nested(&first.path, &second.path) {
        return Some((
            format!(
                "the directories of the host behind `{read}` and `{write}` overlap, but have different access"
            ),
            hint,
        ));
    }
    let (outer, inner) =
        if Path::new(write).starts_with(read) { (read, write) } else { (write, read) };
    nested(Path::new(read), Path::new(write)).then(|| {
        (
            format!(
                "the tool's path `{inner}` is inside of `{outer}`, but they have different access"
            ),
            "give both the same access, or give one a path outside of the other",
        )
    })
}

fn nested(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn secret(
    problems: &mut Problems<'_>,
    name: &str,
    use_: &At<schema::SecretTable>,
    said: &schema::Grants,
    grants: &Grants,
) -> Option<SecretGrant> {
    let placed = injection(problems, use_.value.injection.as_ref());
    let Some(destination) = &use_.value.destination else {
        if !said.lists().any(|(kind, rule)| kind == GrantKind::Reveal && rule.value == name) {
            let message = format!(
                "the secret `{name}` has no `destination`, so it is never put into a request"
            );
            problems.error(
                &use_.span,
                message,
                "name the requests it is for: destination = \"https://api.example.com\"",
            );
        }
        return None;
    };
    let rule: HttpRule = parsed_rule(problems, destination)?;
    if !effective::overlaps(&rule, &grants.http) {
        let message = format!("the secret `{name}` is for requests that are not granted: `{rule}`");
        problems.warning(
            &destination.span,
            message,
            format!("to send it there, grant the requests too: http = [\"{rule}\"]"),
        );
    }
    Some(SecretGrant::new(rule, placed?))
}

fn injection(
    problems: &mut Problems<'_>,
    said: Option<&At<Either<String, schema::InjectionTable>>>,
) -> Option<Injection> {
    let Some(said) = said else { return Some(Injection::Bearer) };
    let placed = match &said.value {
        Either::Short(word) if word == "bearer" => return Some(Injection::Bearer),
        Either::Short(_) => None,
        Either::Table(schema::InjectionTable { basic, header, query }) => {
            match (basic, header, query) {
                (Some(user), None, None) => Some(Injection::Basic { user: user.clone() }),
                (None, Some(name), None) => Some(Injection::Header { name: name.clone() }),
                (None, None, Some(name)) => Some(Injection::Query { name: name.clone() }),
                _ => None,
            }
        }
    };
    if placed.is_none() {
        let hint = "for `injection`, write \"bearer\", { basic = \"USER\" }, { header = \"X-Key\" } or { query = \"key\" }";
        problems.error(&said.span, "this is not a way to put a secret into a request", hint);
    }
    placed
}

/// Returns the overlay of a tenant or a tool.
pub(crate) fn overlay(problems: &mut Problems<'_>, said: &schema::Narrowing) -> Overlay {
    let mut overlay = Overlay::default();
    for (kind, lines) in said.rules() {
        // An empty list narrows too.
        let _ = overlay.narrow(kind, &[]);
        for line in lines {
            if let Err(bad) = overlay.narrow(kind, &[&line.value]) {
                invalid_rule(problems, line, bad);
            }
        }
    }
    overlay
}
