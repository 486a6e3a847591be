//! Reads `toolcell.toml`: the components, their grants and limits, and how tenants narrow them.
//!
//! A command or a server calls [`Configuration::read`] with a path, or [`Configuration::find`] for
//! the nearest file of that name, and gets a [`Configuration`] or all problems of the file, each
//! with its line. The text is parsed, checked against the schema, and resolved by the other modules
//! of this crate into grants, limits, tenants (customers, whose rules can only narrow), values of
//! secrets and network settings. The modules below it load, approve, reload and roll back its
//! components.
//!
//! A file is used as a whole or not at all; without a file nothing is granted. A file of another
//! user is not read. A file that was found and that this user has not approved can only restrict:
//! none of its components is used, no secret's value is read, no limit is raised.

mod approve;
mod choose;
mod load;
pub(crate) mod lock;
pub(crate) mod reload;
mod rollback;
mod search;
mod secrets;
mod typed;
mod vet;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use toml::de::DeTable;
use toolcell::http::Egress;
use toolcell::secrets::StoredSecrets;
use toolcell::tenant::Quota;
use toolcell::{Executor, Limits, Tenant};

use crate::approval::dev;
use crate::approval::lock::lock_path;
use crate::approval::signed::{SignatureRequirement, Signatures};
use crate::approval::trust::{Approval, FoundConfiguration};
use crate::approval::versions;
use crate::error::Error;
use crate::file::network::Network;
use crate::file::options::ReadOptions;
use crate::file::resolved::{ComponentConfig, Section, ToolConfig};
use crate::file::secrets::{Origin, OwnSecrets, Secrets};
use crate::grants::rules::{self, ConfiguredRule};
use crate::grants::{self, limits};
use crate::paths::files;
use crate::paths::roots::Guarded;
use crate::problem::{Problem, Problems, in_order};
use crate::schema::isolation::{self, Isolation};
use crate::schema::{self, At, kind, password, shape};
use crate::serving::engines::Engines;
use crate::tenants::issuer::{Issuer, issuer};
use crate::tenants::offered::offered;
use crate::tenants::quota;
use crate::tenants::settings::TenantSettings;
use crate::text::hint_command::HintCommand;

/// A configuration. Empty if there is no file.
#[derive(Debug, Default)]
pub struct Configuration {
    /// The path of the file for messages.
    pub file: Option<String>,
    /// The path of the file for opening it.
    source: Option<PathBuf>,
    /// A file that was found but not read, because it belongs to another user.
    foreign: Option<search::Ignored>,
    /// The path of the lock beside it.
    lock: PathBuf,
    /// The path of the file with links resolved.
    pub path: Option<PathBuf>,
    /// Set if the file was found, rather than named on the command line or by the environment.
    pub found: Option<FoundConfiguration>,
    /// The approval: the configuration may be used if it is [`Approval::Given`].
    pub approval: Approval,
    /// The components by name.
    pub components: BTreeMap<String, ComponentConfig>,
    /// The limits of a component that has none of its own.
    defaults: Limits,
    /// The signature that is demanded of a component outside of the configuration.
    demand: Option<SignatureRequirement>,
    /// The minimum isolation of every component.
    isolation: Isolation,
    /// The tenants by name.
    pub tenants: BTreeMap<String, TenantSettings>,
    /// The quota of callers without a tenant, which is the default.
    pub quota: Quota,
    /// The issuer whose tokens a server accepts.
    pub issuer: Option<Issuer>,
    /// The network settings of tools' requests.
    network: Network,
    /// The paths that tools must not be granted. A reload watches the files among them.
    guarded: Guarded,
    /// The values of secrets.
    pub secrets: StoredSecrets,
    /// The sources of secrets' values, by name.
    pub origins: BTreeMap<String, Origin>,
    /// Secrets whose value cannot be read, with the reason.
    pub unset: BTreeMap<String, Problem>,
    /// Grants from the command line: `--grant`.
    pub typed: Vec<String>,
    /// The rules of the file, each with its place.
    pub rules: Vec<ConfiguredRule>,
    /// Entries that are probably mistakes.
    pub warnings: Vec<Problem>,
    /// The start of the commands that hints show.
    pub hint: HintCommand,
    /// The options that it was read with.
    options: ReadOptions,
}

impl Configuration {
    /// Reads a configuration by path, with this process's environment.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or with [`Error::Invalid`] and all of its problems. A
    /// secret without a value is not an error.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::read_with(path, ReadOptions::default())
    }

    /// As [`read`](Self::read), with other directories, variables or secrets.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with(path: impl AsRef<Path>, options: ReadOptions) -> Result<Self, Error> {
        Self::of_file(path.as_ref().to_owned(), options, IsNamed::Yes)
    }

    /// Finds the nearest `toolcell.toml`, from the current directory upwards, and reads it. Without
    /// a file, the result is empty.
    ///
    /// A configuration that was found is used only after this user approved it: see [`Approval`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn find(options: ReadOptions) -> Result<Self, Error> {
        match search::nearest(&options) {
            (Some(shown), _) => Self::of_file(shown, options, IsNamed::No),
            (None, foreign) => {
                let (hint, guarded) = (options.hint.clone(), options.guarded());
                Ok(Self { hint, guarded, options, foreign, ..Self::default() })
            }
        }
    }

    /// Reads the same file again, with the same options.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn read_again(&self) -> Result<Self, Error> {
        match &self.source {
            Some(file) => {
                let named = if self.found.is_some() { IsNamed::No } else { IsNamed::Yes };
                Self::of_file(file.clone(), self.options.clone(), named)
            }
            None => Self::find(self.options.clone()),
        }
    }

    fn of_file(shown: PathBuf, options: ReadOptions, named: IsNamed) -> Result<Self, Error> {
        let is_found = named == IsNamed::No;
        let shown = options.opened(shown);
        let text = files::configuration(&shown)?;
        let path = fs::canonicalize(&shown).unwrap_or_else(|_| shown.clone());
        let place = lock_path(&path)?;
        if let (true, Some(dir)) = (is_found, path.parent()) {
            files::own_directory(dir, "name a configuration of your own with `--config FILE`")?;
        }
        let lock = is_found.then(|| files::lock(&place)).transpose()?;
        let found = lock
            .map(|lock| FoundConfiguration::new(&path, &text, lock, options.state_dir.as_deref()));
        let (source, shown) = (Some(shown.clone()), shown.display().to_string());
        let mut problems = Problems::new(&shown, &text);
        let base = path.parent().unwrap_or(Path::new("/")).to_owned();
        let mut guarded = options.guarded();
        guarded.unread.extend(password::has_password(&text).then(|| path.clone()));
        guarded.unwritten.extend([&path, &place].into_iter().chain(&source).cloned());
        let places = Places { base, guarded, secrets: Secrets::default() };
        let config = Self::parsed(&mut problems, places, found, &options);
        let Problems { mut errors, warnings, .. } = problems;
        match config {
            Some(config) if errors.is_empty() => Ok(Self {
                path: Some(path),
                file: Some(shown),
                source,
                lock: place,
                warnings: in_order(warnings),
                hint: options.hint.clone(),
                options,
                ..config
            }),
            config => {
                let unset = |config: Self| {
                    let tenants = config.tenants.into_values();
                    let own = tenants.flat_map(|tenant| tenant.secrets.unset.into_values());
                    config.unset.into_values().chain(own)
                };
                errors.extend(config.into_iter().flat_map(unset));
                Err(Error::invalid(&shown, in_order(errors)))
            }
        }
    }

    fn parsed(
        problems: &mut Problems<'_>,
        places: Places,
        found: Option<FoundConfiguration>,
        options: &ReadOptions,
    ) -> Option<Self> {
        let text = problems.text;
        let (mut tree, faults) = DeTable::parse_recoverable(text);
        if !faults.is_empty() {
            for fault in faults {
                let hint = match fault.message() {
                    "duplicate key" => "remove one of the two, or give it another name",
                    _ => {
                        "write text in quotes and a section's name in brackets; https://toml.io explains TOML"
                    }
                };
                problems.error(&fault.span().unwrap_or_default(), fault.message(), hint);
            }
            return None;
        }
        shape::check(problems, &schema::schema(), tree.get_mut());
        match <schema::File as serde::Deserialize>::deserialize(toml::Deserializer::from(tree)) {
            Ok(file) => Some(Self::resolved(problems, &file, places, found, options)),
            // Violations of the schema are reported already.
            Err(_) if !problems.errors.is_empty() => None,
            Err(error) => {
                problems.error(
                    &error.span().unwrap_or_default(),
                    error.message(),
                    "compare the file with its JSON Schema: `toolcell check --schema`",
                );
                None
            }
        }
    }

    /// Resolves the file to a configuration. Parts with problems are left out.
    fn resolved(
        problems: &mut Problems<'_>,
        file: &schema::File,
        Places { base, mut guarded, mut secrets }: Places,
        found: Option<FoundConfiguration>,
        options: &ReadOptions,
    ) -> Self {
        let approval = found.as_ref().map_or(Approval::Given, FoundConfiguration::approval);
        let base = base.as_path();
        secrets.fetch_all(problems, (base, options), file, approval);
        // The writer of an issuer's keys decides who is authenticated. A URL is in no directory.
        let issuer_keys = file.issuer.iter().filter_map(|said| said.value.keys.as_ref());
        let components = file.components.values().map(|component| &component.value.path);
        let decisive = components.chain(issuer_keys).chain(&file.network.root_certificates);
        guarded.unwritten.extend(decisive.map(|said| base.join(&said.value)));
        guarded.unread.extend(secrets.files().map(Path::to_owned));
        guarded.unread.extend(file.network.proxy_file().map(|said| base.join(&said.value)));
        // A file that is not approved must not control where requests go and which servers are
        // trusted.
        let network = if approval.is_missing() {
            Network::default()
        } else {
            Network::of(problems, (base, options), &file.network)
        };
        let defaults = limits::overlaid(problems, &file.defaults.limits, Limits::default());
        let Secrets { shared: OwnSecrets { origins, unset }, stored, own: mut own_secrets } =
            secrets;
        let resolved = guarded.clone().resolved();
        let dev = dev::folders(problems, &file.dev, base, &resolved, found.as_ref());
        let signatures = Signatures::of(problems, file);
        let mut config = Self {
            found,
            approval,
            defaults,
            isolation: isolation::of_section(&file.host.isolation),
            demand: signatures.of_all.clone(),
            quota: quota::overlaid(problems, &file.defaults.quota, Quota::default()),
            network,
            guarded,
            // A file that is not approved authenticates no callers, and its file of keys is not
            // read.
            issuer: (file.issuer.as_ref().filter(|_| approval == Approval::Given))
                .and_then(|said| issuer(problems, base, &said.value)),
            secrets: stored,
            origins,
            unset,
            rules: rules::parse_all(problems, file),
            ..Self::default()
        };
        let isolation = config.isolation;
        // The component of each file, with links resolved.
        let mut real_files = HashMap::new();
        for (name, said) in &file.components {
            schema::check_name(problems, &said.span, "component", name);
            let schema::Component { path, digest, grants, isolation: own, limits, tools, .. } =
                &said.value;
            if path.value.is_empty() {
                problems.error(
                    &path.span,
                    "the path is empty",
                    "write the component's file, relative to this file",
                );
            }
            let mut configured = ComponentConfig {
                path: base.join(&path.value),
                grants: grants
                    .as_ref()
                    .map(|said| grants::grants(problems, &said.value, base, &resolved, name))
                    .unwrap_or_default(),
                limits: limits::overlaid(problems, limits, defaults),
                isolation: isolation.max(isolation::of_component(problems, own)),
                development: dev::development(&dev, &base.join(&path.value)),
                kind: kind::of_component(problems, name, &said.value),
                digest: digest.as_ref().and_then(|digest| pinned(problems, digest)),
                demand: signatures.of_component(problems, base, &said.value),
                section: Section {
                    line: problems.line(grants.as_ref().map_or(&said.span, |grants| &grants.span)),
                    has_grants: grants.is_some(),
                },
                tools: BTreeMap::new(),
            };
            for (tool, At { value: said, span }) in tools {
                let hint = format!(
                    "write it in [components.{name}]: all tools of a component share its isolation"
                );
                not_of_tool(problems, said.isolation.as_ref(), "its own isolation", &hint);
                let hint =
                    "write it in [tenants.NAME.quota], or in [defaults.quota] for all tenants";
                not_of_tool(problems, said.quota.as_ref(), "a quota", hint);
                let hint = "write it in [tenants.NAME.secret_values]: all tools share the values of secrets";
                let value = said.secret_values.values().next();
                not_of_tool(problems, value, "values of secrets", hint);
                let hint = "write it in [tenants.NAME]; the tools that a tool may call are in its `invoke`";
                not_of_tool(problems, said.tools.as_ref(), "a list of tools", hint);
                let limits = limits::overlaid(problems, &said.limits, Limits::unlimited());
                configured.grants.tools.insert(tool.clone(), grants::overlay(problems, said));
                let message = format!("`{name}` has no tool `{}`", tool.escape_debug());
                let unknown = problems.at(span, message, "");
                configured.tools.insert(tool.clone(), ToolConfig { limits, unknown });
            }
            if let Ok(real) = fs::canonicalize(&configured.path) {
                let first = *real_files.entry(real).or_insert(name);
                if first != name {
                    let message =
                        format!("the components `{first}` and `{name}` have the same file");
                    problems.error(
                        &path.span,
                        message,
                        "remove one of the two sections, or name another file",
                    );
                }
            }
            config.components.insert(name.clone(), configured);
        }
        for (name, said) in &file.tenants {
            if name.is_empty() || name.trim() != name || name.chars().any(char::is_control) {
                let message = format!("`{}` cannot be a tenant's name", name.escape_debug());
                let hint = "use a name that is not empty, without control characters and without blanks around it";
                problems.error(&said.span, message, hint);
            }
            let limits = limits::overlaid(problems, &said.value.limits, Limits::unlimited());
            let overlay = Some(grants::overlay(problems, &said.value).into());
            let quota = match &said.value.quota {
                Some(said) => quota::overlaid(problems, &said.value, config.quota),
                None => config.quota,
            };
            let (tools, named_tools) = offered(problems, said.value.tools.as_ref());
            let settings = TenantSettings {
                tenant: Tenant { limits, overlay, tools, quota },
                isolation: isolation.max(isolation::of_section(&said.value.isolation)),
                secrets: own_secrets.remove(name).unwrap_or_default(),
                named_tools,
            };
            config.tenants.insert(name.clone(), settings);
        }
        config
    }

    /// Returns engines with the settings of this configuration and the directories that it was read
    /// with.
    pub fn engines(&self) -> Engines {
        let egress = Egress::new();
        self.network.apply(&egress);
        Engines::new(self.secrets.clone(), egress, self.path.as_deref(), &self.options)
    }

    /// Returns true if the tool of this name is offered to a tenant. Without a tenant every tool
    /// is.
    pub fn offers(&self, tenant: Option<&str>, tool: &str) -> bool {
        let settings = tenant.and_then(|tenant| self.tenants.get(tenant));
        settings.is_none_or(|settings| settings.tenant.offers(tool))
    }

    /// Returns the executor with every tenant. It also accepts calls without a tenant, which are
    /// the user's own.
    pub fn executor(&self) -> Executor {
        let with = |executor: Executor, (name, settings): (&String, &TenantSettings)| {
            executor.with_tenant(name, settings.tenant.clone())
        };
        self.tenants.iter().fold(Executor::new().with_anonymous(Tenant::default()), with)
    }
}

/// Tells a named configuration from one that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsNamed {
    Yes,
    No,
}

/// The location of a configuration, and the files that it refers to.
struct Places {
    /// The directory that relative paths are resolved against.
    base: PathBuf,
    /// Paths that no tool may be granted, of what is read already.
    guarded: Guarded,
    /// Secrets whose values are known already.
    secrets: Secrets,
}

/// Refuses a setting that a single tool cannot have.
fn not_of_tool<T>(problems: &mut Problems<'_>, said: Option<&At<T>>, setting: &str, hint: &str) {
    if let Some(said) = said {
        problems.error(&said.span, format!("a single tool cannot have {setting}"), hint);
    }
}

fn pinned(problems: &mut Problems<'_>, digest: &At<String>) -> Option<(String, Problem)> {
    if versions::hex_of(&digest.value).is_none() {
        let message = format!("`{}` is not a digest", digest.value.escape_debug());
        let hint =
            "write `sha256:` and 64 lower-case hex digits, as `toolcell inspect` prints them";
        problems.error(&digest.span, message, hint);
        return None;
    }
    let hint =
        "check where the file comes from; if it is the version you want, write its digest here";
    let message = "the component does not have the digest that is written here";
    Some((digest.value.clone(), problems.at(&digest.span, message, hint)))
}
