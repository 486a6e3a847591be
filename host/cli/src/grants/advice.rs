//! Gives advice for denied requests: the warnings, notes and hints of `explain` and `run`.
//!
//! A denial says which layer denied a request of a tool: the component's grants, the tool's
//! section, the tenant's section, the network. The commands describe the tool in a
//! [`RequestOrigin`] and call `remedy` with the denials. It returns a [`Remedy`] to print: lines to
//! paste into the configuration, each with the place where it belongs, warnings of dangerous grants
//! before them, and the approval that is needed afterwards. A host on a private network needs a
//! grant that names the network; its name is looked up only if the caller allows it, because a
//! lookup of a name that the tool computed could carry data away. [`how_to_learn`] returns the hint
//! with the `learn` command.

use std::collections::BTreeSet;

use toolcell::component::{ComponentKind, PathUse};
use toolcell::grants::{
    Denial, GrantKind, Host, HttpRule, Layer, Request, Rights, Suggestion, Target,
};
use toolcell::http::Egress;
use toolcell::tool::Need;
use toolcell::{Component, Definition, Grants};

use super::decision::{self, Answer};
use super::dry_run_files::directory_of;
use super::gaps::{self, Gap};
use super::grant_text;
use super::rule_lines::Item;
use crate::config::{Config, Development, ResolvedComponent};
use crate::print::Printer;

/// The origin of the requests: a tool of a component, for a tenant.
#[derive(Clone, Copy)]
pub(crate) struct RequestOrigin<'a> {
    pub(crate) config: &'a Config,
    pub(crate) chosen: &'a ResolvedComponent<'a>,
    pub(crate) tenant: Option<&'a str>,
    pub(crate) definition: &'a Definition,
    pub(crate) rights: &'a Rights,
}

/// The advice about denials.
#[derive(Default)]
pub(crate) struct Remedy {
    warnings: BTreeSet<String>,
    notes: BTreeSet<String>,
    hints: Vec<String>,
    /// The approval that is needed after a change of a section or a rule.
    approval: Option<String>,
}

impl Remedy {
    pub(crate) fn print(&self, printer: &Printer) {
        self.warnings.iter().for_each(|warning| printer.warning(warning));
        self.notes.iter().for_each(|note| printer.note(note));
        self.hints.iter().for_each(|hint| printer.hint(hint));
        if let Some(approve) = &self.approval {
            printer.hint(format!("after the change of the configuration, {approve}"));
        }
    }
}

impl RequestOrigin<'_> {
    /// Returns the rule of the configuration that decided, if one did.
    pub(crate) fn deciding_rule(&self, request: &Request<'_>, answer: &Answer) -> Option<Item> {
        let scope = (self.tenant, &*self.definition.name);
        decision::deciding_rule(self.config, self.chosen, scope, request, answer)
    }

    /// Returns the needs that the tool declares and is not granted.
    pub(crate) fn missing_needs(&self) -> Vec<Gap> {
        let component = self.chosen.configured.map_or("", |(name, _)| name);
        gaps::missing_needs(self.config, component, self.rights, self.definition)
    }

    /// Returns the advice for these denials. `is_known` returns true if a host's name may be looked
    /// up. `component` is given if it may import more than is granted.
    pub(crate) async fn remedy(
        &self,
        denials: &[Denial],
        is_known: impl Fn(&str) -> bool,
        component: Option<&Component>,
    ) -> Remedy {
        let mut remedy = Remedy::default();
        let mut asked = Suggestion::default();
        let (mut of_tool, mut of_tenant) = (Vec::new(), Vec::new());
        let mut others = Vec::new();
        for denial in denials {
            let Ok(request) = Request::parse(&denial.request) else {
                others.push((denial, denial.hint()));
                continue;
            };
            match denial.layer {
                Layer::Component => {
                    let above = suggest(&mut asked, self.definition, &request);
                    let granted = self.chosen.grants().directories;
                    let is_new = |above: &&str| granted.iter().all(|dir| dir.name != *above);
                    remedy.notes.extend(above.filter(is_new).map(|above| {
                        format!(
                            "the path is taken for a file: the grant is for its directory `{above}`, with all that it \
                             holds"
                        )
                    }));
                    if matches!(&request, Request::Http { target, .. } if is_known(&target.host().to_string()))
                        && let Some(Ok(rule)) = private_rule(&Egress::new(), &request).await
                    {
                        asked.add_http(&rule);
                    }
                }
                // The request has already looked up the name, and a rule of the operator allows it.
                Layer::Network => match decision::decide(self.rights, &request).await {
                    Answer::Private(networks) => {
                        let Remedy { warnings, hints, approval, .. } =
                            self.allow_private(&request, &networks);
                        remedy.warnings.extend(warnings);
                        remedy.approval = approval;
                        others.extend(hints.into_iter().map(|hint| (denial, hint)));
                    }
                    Answer::Allowed | Answer::Unresolved(_) | Answer::Denied(_) => {
                        others.push((denial, denial.hint()))
                    }
                },
                Layer::Tool => of_tool.push(request),
                Layer::Tenant => of_tenant.push(request),
                Layer::Declaration
                | Layer::Call
                | Layer::Caller
                | Layer::Secrets
                | Layer::Host
                | _ => others.push((denial, denial.hint())),
            }
        }
        let is_added = !asked.is_empty();
        if is_added {
            if let Some(component) = component {
                let missing = add_imports(&mut asked, self.chosen, component);
                remedy.notes.extend((!missing.is_empty()).then(|| {
                    let learn = how_to_learn(self.config, self.chosen, component);
                    let missing = missing.join(", ");
                    format!("a call also needs grants for what the component imports: {missing}; {learn}")
                }));
            }
            remedy.warnings.extend(asked.warnings());
            remedy.hints.push(grant_text::advice(self.config, self.chosen, &asked));
        }
        for (layer, requests) in [(Layer::Tool, of_tool), (Layer::Tenant, of_tenant)] {
            if !requests.is_empty() {
                remedy.approval = grant_text::approval(self.config, self.chosen);
                remedy.hints.push(self.widening_hint(layer, &requests));
            }
        }
        // The hint on additions contains it already.
        remedy.approval = remedy.approval.filter(|_| !is_added);
        let is_one = denials.len() == 1;
        let hints = others.into_iter().map(|(denial, hint)| {
            if is_one { hint } else { format!("`{}`: {hint}", denial.request) }
        });
        let mut hints: Vec<_> = hints.collect();
        hints.dedup();
        remedy.hints.extend(hints);
        remedy
    }

    /// Returns the hint for a section that narrows this tool or the tenant.
    fn widening_hint(&self, layer: Layer, requests: &[Request<'_>]) -> String {
        let name = self.chosen.configured.map_or("", |(name, _)| name);
        let of_tool =
            self.chosen.section_of(&self.definition.name).filter(|_| layer == Layer::Tool);
        let tenant = self.tenant.unwrap_or("NAME");
        let (section, place) = match of_tool {
            Some(section) => (section, vec!["components", name, "tools", &self.definition.name]),
            None => (format!("tenants.{tenant}"), vec!["tenants", tenant]),
        };
        let lines = grant_text::narrowed_lines(self.config, &place, requests);
        format!("to allow it, write this in [{section}]: {}", lines.join("\n"))
    }

    /// Returns the advice that extends the rule of a granted request to these private networks.
    pub(crate) fn allow_private(&self, request: &Request<'_>, networks: &[String]) -> Remedy {
        let written = self.deciding_rule(request, &Answer::Allowed);
        let granted =
            self.rights.granted().http.iter().find(|granted| decision::is_within(request, granted));
        let old = written.map(|rule| rule.text).or_else(|| granted.map(HttpRule::to_string));
        let old = old.unwrap_or_else(|| request.to_string());
        let new = decision::with_private(self.rights, &old, networks);
        let place = match self.chosen.development() {
            Some(Development::CommandLine) => {
                let option = grant_text::option(&format!("http={new}"));
                format!("the grant of `{old}`:\n{option}")
            }
            Some(Development::Directory(_)) | None => format!("the rule: {new}"),
        };
        let hint = format!("to allow it, write this in place of {place}");
        let warnings =
            with_networks(request, networks).map(|rule| Suggestion::of_rule(&rule).warnings());
        let approval = grant_text::approval(self.config, self.chosen);
        Remedy {
            warnings: warnings.into_iter().flatten().collect(),
            hints: vec![hint],
            approval,
            ..Remedy::default()
        }
    }
}

/// Returns the smallest rule that allows a request to these private networks.
fn with_networks(request: &Request<'_>, networks: &[String]) -> Option<HttpRule> {
    let Request::Http { method, target } = request else { return None };
    let networks = networks.iter().filter_map(|network| network.parse().ok());
    Some(HttpRule::smallest(*method, target).with_private(networks))
}

/// Adds the grant for a request. For a path it is the directory that the tool declares, or the
/// directory that contains the path; the latter is a guess and is returned. A path at the top
/// counts as a directory, unless its name has a dot.
fn suggest<'a>(
    asked: &mut Suggestion,
    definition: &Definition,
    request: &'a Request<'_>,
) -> Option<&'a str> {
    if let Request::File { access, path } = request {
        let used = PathUse { access: *access, is_directory: true };
        let declared = directory_of(definition, path, used);
        let above = path.rsplit_once('/').and_then(|(above, name)| match above {
            "" => name.contains('.').then_some("/"),
            above => Some(above),
        });
        let above = above.filter(|_| declared == path);
        asked.add_directory(above.unwrap_or(declared), *access);
        return above;
    }
    asked.add(request);
    if let Request::Secret { name } = request {
        add_secret(asked, definition, name);
    }
    None
}

/// Adds a secret for the HTTP requests that a tool declares, granted or not.
pub(crate) fn add_secret(asked: &mut Suggestion, definition: &Definition, name: &str) {
    let declared = definition.needs.iter().filter(|need| need.kind == "http");
    declared
        .filter_map(|need| need.pattern.parse().ok())
        .for_each(|rule| asked.add_secret(name, &rule));
}

/// Returns the smallest rule that allows a request to a host on a private network, with that
/// network; none if the host is on no such network. Looks up the name; `Err` if it has no address
/// now.
pub(crate) async fn private_rule(
    egress: &Egress,
    request: &Request<'_>,
) -> Option<Result<HttpRule, ()>> {
    let mut grants = Grants::default();
    grants.http.push(with_networks(request, &[])?);
    let alone = Rights::default().with_granted(grants.into());
    match decision::decided_by(egress, &alone, request).await {
        Answer::Private(networks) => with_networks(request, &networks).map(Ok),
        Answer::Unresolved(_) => Some(Err(())),
        Answer::Allowed | Answer::Denied(_) => None,
    }
}

/// Returns the word for `--as`, if the kind has to be typed. A kind that a file states need not be.
pub(crate) fn used_as(chosen: &ResolvedComponent<'_>) -> Option<&'static str> {
    match (chosen.development(), chosen.kind()) {
        (Some(Development::CommandLine), kind) if kind != ComponentKind::Tools => Some(kind.word()),
        (Some(Development::CommandLine | Development::Directory(_)) | None, _) => None,
    }
}

/// Returns a hint with the `learn` command for the call that was typed. If no call was typed, the
/// hint says what to add.
pub(crate) fn how_to_learn(
    config: &Config,
    chosen: &ResolvedComponent<'_>,
    component: &Component,
) -> String {
    let word = chosen.word();
    let call = config.hint.call();
    let proposed = || component.inspection().proposal().filter(|_| chosen.configured.is_none());
    let options: Vec<_> =
        used_as(chosen).or_else(proposed).into_iter().flat_map(|word| ["--as", word]).collect();
    let tool = component.definitions().next().filter(|_| call.is_empty());
    let typed = call.iter().chain(tool.map(|tool| &tool.name)).map(String::as_str);
    let words: Vec<_> = std::iter::once(&*word).chain(typed).collect();
    let learn = config.hint.command("learn", &options, &words);
    if call.is_empty() {
        format!("{learn} shows what a call asks for: add its arguments to the command")
    } else {
        format!("{learn} shows what this call asks for")
    }
}

/// Returns true if a host's name is in the arguments, or the tool declares it. A name that the tool
/// computed can contain data that it read, and a lookup would send that data away.
pub(crate) fn is_known(definition: &Definition, arguments: &str, name: &str) -> bool {
    let host = |need: &Need| {
        let url = need.pattern.split_once(' ').map_or(&*need.pattern, |(_, url)| url);
        Target::parse(url).map(|target| target.host()).ok()
    };
    let mut declared = definition.needs.iter().filter(|need| need.kind == "http").filter_map(host);
    arguments.contains(name)
        || declared.any(|host| matches!(host, Host::Name(declared) if declared == name))
}

/// Adds the component's other declared needs for imports that would not be granted: without them
/// none of its tools can be called. Returns the imports without a declared need.
fn add_imports(
    asked: &mut Suggestion,
    chosen: &ResolvedComponent<'_>,
    component: &Component,
) -> Vec<String> {
    // The import status depends on the kinds of the grants alone.
    let granted = chosen.grants().kinds();
    let missing = |asked: &Suggestion| -> Vec<String> {
        let more = asked.additions().into_iter().filter_map(|(key, _)| GrantKind::of_word(key));
        let kinds = granted.iter().copied().chain(more).collect();
        let missing = component.inspection().missing_with(component.definitions(), kinds);
        missing.map(|(name, _)| name.clone()).collect()
    };
    for kind in GrantKind::all() {
        let mut more = asked.clone();
        let needs = component.definitions().flat_map(|tool| &tool.needs);
        let needs = needs.filter(|need| need.kind == kind.row().need);
        needs.for_each(|need| more.add_need(need));
        if missing(&more).len() < missing(asked).len() {
            *asked = more;
        }
    }
    missing(asked)
}

#[cfg(test)]
mod tests {
    use toolcell::grants::Decision;
    use toolcell::http::{ResolveFuture, Resolver};

    use super::*;

    /// A resolver that returns a private address for every name.
    struct Here;

    impl Resolver for Here {
        fn resolve(&self, _host: &str, _port: u16) -> ResolveFuture {
            Box::pin(std::future::ready(Ok(vec![[10, 1, 2, 3].into()])))
        }
    }

    /// The proposed rule for a name allows the call.
    #[tokio::test]
    async fn private_host_grant_names_its_network() {
        let request = Request::parse("GET http://wiki.internal/x").unwrap();
        let mut asked = Suggestion::of(&request);
        let egress = Egress::new().with_resolver(Here);
        let rule =
            private_rule(&egress, &request).await.expect("a private host").expect("an address");
        asked.add_http(&rule);
        let line = r#"http = [{ rule = "GET http://wiki.internal/x", private_networks = ["10.1.2.3/32"] }]"#;
        assert_eq!(asked.to_paste(), [line]);
        let mut grants = Grants::default();
        grants.http.push(rule);
        let rights = Rights::default().with_granted(grants.into());
        assert_eq!(rights.allows(&request), Decision::Allowed);
        assert!(matches!(decision::decided_by(&egress, &rights, &request).await, Answer::Allowed));
    }

    /// A lookup would send the tool's own text away.
    #[test]
    fn only_declared_or_given_names_are_resolved() {
        let mut definition = Definition::new("t", "").unwrap();
        definition.needs = vec![
            Need::new("http", "GET https://intranet.example/v1", ""),
            Need::new("http", "https://.example.org", ""),
            Need::new("kv", "read https://kv.example", ""),
        ];
        let arguments = r#"{"url": "http://wiki.internal/x"}"#;
        for (name, is_looked_up) in [
            ("intranet.example", true),
            ("wiki.internal", true),
            ("what-it-read.intranet.example", false),
            ("what-it-read.example.org", false),
            ("kv.example", false),
        ] {
            assert_eq!(is_known(&definition, arguments, name), is_looked_up, "{name}");
        }
    }
}
