//! The schema of `toolcell.toml`: its keys and the types of their values.
//!
//! Reading a configuration deserialises the file into [`File`] and the types below it, one for each
//! section; unknown keys are refused. Values keep their place in the file, so that a later problem
//! has its line. The JSON Schema for editors, which `toolcell check --schema` prints, is generated
//! from these types and their comments by [`schema`]; so the comments are texts for users.
//!
//! Not here: the meaning of the values, in `grants`, `file` and `tenants`; the errors for a file of
//! another shape, in `shape.rs`.

pub(crate) mod isolation;
pub(crate) mod kind;
pub(crate) mod password;
mod place;
pub(crate) mod shape;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use toolcell::Definition;
use toolcell::component::{CommandInput, CommandOutput};
use toolcell::grants::{Access, GrantKind};

use crate::problem::Problems;
use kind::Kind;

pub use isolation::Isolation;
pub use password::without_password;

pub(crate) use place::{At, Either};

/// The name of the file that is searched for.
pub const NAME: &str = "toolcell.toml";

/// The components of toolcell, and their grants. Only what is in this file is granted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// Components by the name under which they are run: `[A-Za-z0-9_-]`, 64 characters at most.
    pub(crate) components: BTreeMap<String, At<Component>>,
    /// Defaults for components that do not say otherwise.
    pub(crate) defaults: Defaults,
    /// For development: what needs no approval. Used only if the file is named with `--config` or
    /// `TOOLCELL_CONFIG`.
    pub(crate) dev: Dev,
    /// For all components, including those that are run by their path, and for all tenants.
    pub(crate) host: Host,
    /// For `toolcell serve`: whose tokens (JWT) are accepted instead of API keys.
    pub(crate) issuer: Option<At<Issuer>>,
    /// The network settings of tools: a proxy, and further certificate authorities.
    pub(crate) network: Network,
    /// Publishers, who sign components, by name.
    pub(crate) publishers: BTreeMap<String, At<Publisher>>,
    /// Tenants by name. A section narrows all components for the tenant; it never grants.
    pub(crate) tenants: BTreeMap<String, At<Narrowing>>,
}

/// For all components, including those that are run by their path, and for all tenants.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Host {
    /// With `true`, every component must be signed by one of the publishers. Default: only those
    /// that name a publisher.
    pub(crate) require_signatures: Option<At<bool>>,
    /// The isolation of calls from each other: `pooled`, cells from a shared pool of memory;
    /// `strict`, each cell with memory of its own; `process`, the same in one process per tenant. A
    /// component or tenant can ask for more, never for less.
    pub(crate) isolation: Option<At<Isolation>>,
}

/// The network settings of tools. The variables `HTTPS_PROXY` and `ALL_PROXY` count only where
/// `proxy` names them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Network {
    /// The HTTP proxy that connects to the servers: `http://proxy.example.com:3128`, or with a
    /// password `http://USER:PASSWORD@HOST:PORT`; or where this URL is stored: `{ file =
    /// "proxy.url" }`. Host names are resolved and addresses are checked here, not by the proxy.
    pub(crate) proxy: Option<At<Either<String, From>>>,
    /// Files of certificate authorities (PEM), seen from this file. They are trusted in addition to
    /// those of the public internet.
    pub(crate) root_certificates: Vec<At<String>>,
}

/// For development: what needs no approval. Used only if the file is named with `--config` or
/// `TOOLCELL_CONFIG`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Dev {
    /// Directories, seen from this file. Components of this file that lie in one of them need no
    /// approval: each build is used at once, with its grants. `target/wasm32-wasip2/release`
    pub(crate) directories: Vec<At<String>>,
}

/// A publisher of components, who signs them: `ssh-keygen -Y sign -n toolcell -f KEY FILE`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Publisher {
    /// Public keys, as in a `.pub` file: `ssh-ed25519 AAAA…`.
    pub(crate) keys: Vec<At<String>>,
    /// Keys that are no longer valid, whether or not they are in `keys` too.
    #[serde(default)]
    pub(crate) revoked_keys: Vec<At<String>>,
}

/// One component.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Component {
    /// Its file, seen from this file.
    pub(crate) path: At<String>,
    /// `sha256:` and 64 hex digits. A file with other bytes is not loaded.
    pub(crate) digest: Option<At<String>>,
    /// The publisher who must have signed it.
    pub(crate) publisher: Option<At<String>>,
    /// The file of its signature, seen from this file. Default: its own path with `.sig` after it.
    pub(crate) signature: Option<At<String>>,
    /// The kind of component: `tools`, which it describes itself; `functions`, each exported
    /// function is a tool; `command`, a program that is one tool with the name of this section.
    /// Default: `tools`.
    #[serde(rename = "as")]
    pub(crate) kind: Option<Kind>,
    /// The arguments, input and output of a command. Only with `as = "command"`.
    pub(crate) command: Option<At<Command>>,
    /// Its grants.
    pub(crate) grants: Option<At<Grants>>,
    /// The isolation of its calls from others: `pooled` or `strict`. `process` is for the host or a
    /// tenant.
    pub(crate) isolation: Option<At<Isolation>>,
    /// Limits of one call.
    #[serde(default)]
    pub(crate) limits: Limits,
    /// Its single tools by name. A section narrows a tool further; it never grants.
    #[serde(default)]
    pub(crate) tools: BTreeMap<String, At<Narrowing>>,
}

/// The arguments, input and output of a command.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Command {
    /// The description of the tool, for the model.
    pub(crate) description: Option<String>,
    /// The words of the command line after the program's name. `{NAME}` is replaced by the argument
    /// `NAME` of the call; a word stays one word. Default: the call has an argument `args`, a list
    /// of words.
    pub(crate) argv: Option<Vec<String>>,
    /// The content of its standard input: `text`, the argument `stdin` of the call; `json`, all
    /// arguments as JSON; `empty`. Default: `text`.
    #[schemars(with = "Option<String>", extend("enum" = ["text", "json", "empty", null]))]
    pub(crate) stdin: Option<CommandInput>,
    /// The form of its standard output: `text`; `json`, which is text if it is not valid JSON;
    /// `bytes`, a part with `media_type`. Default: `text`.
    #[schemars(with = "Option<String>", extend("enum" = ["text", "json", "bytes", null]))]
    pub(crate) output: Option<CommandOutput>,
    /// The media type of an output of `bytes`. Default: `application/octet-stream`.
    pub(crate) media_type: Option<String>,
}

/// The grants of a component. A tool that declares needs gets only those. If one tool of the
/// component declares needs, a tool that declares none gets nothing.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Grants {
    /// Requests: `GET,POST https://api.example.com/v1`, `https://.example.com` for all its
    /// subdomains.
    pub(crate) http: Vec<At<Either<String, HttpTable>>>,
    /// Directories of the host.
    pub(crate) directories: Vec<At<Directory>>,
    /// A directory of each call's own as `/scratch`, gone after it.
    pub(crate) scratch: Option<Either<bool, DirectoryQuota>>,
    /// Environment variables and their values. Not for secrets: the tool reads them.
    pub(crate) environment: BTreeMap<String, At<String>>,
    /// Secrets that the host puts into requests, by the name under which the tool asks for them.
    pub(crate) secrets: BTreeMap<String, At<SecretTable>>,
    /// Names of secrets whose values the tool may READ. It can then send them wherever it may send
    /// requests.
    pub(crate) reveal: Vec<At<String>>,
    /// Keys of the component's own store: `read *`, `write notes/*`.
    pub(crate) kv: Vec<At<String>>,
    /// Other tools that it may call: `lookup`, `notes_*`. They then have at most the rights of this
    /// component; with `own lookup` they have their own.
    pub(crate) invoke: Vec<At<String>>,
}

/// Requests that may also go to private addresses.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpTable {
    /// The rule: `GET http://localhost:8080`.
    pub(crate) rule: At<String>,
    /// Networks outside the public internet, which are denied otherwise: `127.0.0.1/32`.
    #[serde(default)]
    pub(crate) private_networks: Vec<At<String>>,
}

/// One directory of the host, as a tool sees it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Directory {
    /// The tool's name for it: an absolute path.
    pub(crate) name: At<String>,
    /// The directory, seen from this file.
    pub(crate) path: At<String>,
    /// `read`, or `write`, which includes reading.
    #[schemars(with = "String", extend("enum" = ["read", "write"]))]
    pub(crate) access: Access,
    /// Bytes of all files together: `64MiB`.
    pub(crate) max_bytes: Option<At<Amount>>,
    /// Files and directories.
    pub(crate) max_files: Option<At<Amount>>,
}

/// Limits of a directory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DirectoryQuota {
    /// Bytes of all files together: `64MiB`.
    pub(crate) max_bytes: Option<At<Amount>>,
    /// Files and directories.
    pub(crate) max_files: Option<At<Amount>>,
}

/// Where a secret comes from, and into which requests the host puts it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretTable {
    /// Requests into which it is put, as a rule of `http`. The requests must be granted by `http`
    /// too.
    pub(crate) destination: Option<At<String>>,
    /// The place of the secret in them. Default: `bearer`.
    pub(crate) injection: Option<At<Either<String, InjectionTable>>>,
    /// Where its value is stored. Default: the environment variable of its name.
    pub(crate) source: Option<At<From>>,
}

/// The place of a secret in a request: one of these.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InjectionTable {
    /// As the password of this user.
    pub(crate) basic: Option<String>,
    /// As this header.
    pub(crate) header: Option<String>,
    /// As this parameter of the query.
    pub(crate) query: Option<String>,
}

/// Where a value is that is secret: one of these.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct From {
    /// In this environment variable of the command.
    pub(crate) env: Option<At<String>>,
    /// In this file, which no other user may read. A line end at its end is left out.
    pub(crate) file: Option<At<String>>,
}

/// Limits of one call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Wall time, waiting included: `500ms`, `2s`, `1m`.
    #[schemars(with = "Option<String>", example = "5s")]
    pub(crate) timeout: Option<At<Amount>>,
    /// Instruction units: `500M`.
    pub(crate) fuel: Option<At<Amount>>,
    /// All memories and tables of the cell together: `64MiB`.
    pub(crate) memory: Option<At<Amount>>,
    /// Arguments as JSON text: `1MiB`.
    pub(crate) arguments: Option<At<Amount>>,
    /// Everything that the tool returns: `1MiB`.
    pub(crate) result: Option<At<Amount>>,
    /// Log text that is kept: `64KiB`.
    pub(crate) log: Option<At<Amount>>,
    /// Calls from the tool into the host: `100k`.
    pub(crate) host_calls: Option<At<Amount>>,
}

/// Defaults for components and tenants that do not say otherwise.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Defaults {
    /// Limits of one call.
    pub(crate) limits: Limits,
    /// The quota of each tenant of a server; without tenants, of all callers together.
    pub(crate) quota: Quota,
}

/// The quota of one tenant of a server. A key that is absent here and in `[defaults.quota]` is not
/// limited, except for artifacts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Quota {
    /// Calls that begin in a minute: `600`.
    pub(crate) calls_per_minute: Option<At<Amount>>,
    /// Instruction units in a minute: `10G`.
    pub(crate) fuel_per_minute: Option<At<Amount>>,
    /// Calls that run at once: `8`.
    pub(crate) concurrent_calls: Option<At<Amount>>,
    /// Bytes of all artifacts: `256MiB`. Default: what `toolcell serve --artifact-quota` says.
    pub(crate) artifact_bytes: Option<At<Amount>>,
}

/// An issuer of tokens: with one, `toolcell serve` is an OAuth resource server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Issuer {
    /// The issuer, as the claim `iss` has it: `https://login.example.com`.
    pub(crate) url: At<String>,
    /// The URL of this server as its clients know it. The claim `aud` must have it.
    pub(crate) audience: At<String>,
    /// The issuer's public keys, a JWK set: a file, seen from this file, or a URL. Default: where
    /// the issuer's metadata say.
    pub(crate) keys: Option<At<String>>,
    /// The algorithms of signatures that are accepted: `ES256`. Default: every asymmetric one that
    /// the keys are for.
    pub(crate) algorithms: Option<Vec<At<String>>>,
    /// The claim that names the tenant. Default: `tenant`.
    pub(crate) tenant_claim: Option<At<String>>,
    /// A scope that each token must have. Default: none.
    pub(crate) scope: Option<At<String>>,
}

/// Narrows every call of one tenant, or of one tool. A kind that is absent is not narrowed; an
/// empty list takes the kind away.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Narrowing {
    /// Tighter limits.
    pub(crate) limits: Limits,
    /// The quota of a tenant of a server. Not for tools.
    pub(crate) quota: Option<At<Quota>>,
    /// Tools that the tenant sees and may call: `greet`, `notes_*`. Default: every tool. Not for
    /// tools.
    pub(crate) tools: Option<At<Vec<At<String>>>>,
    /// Requests that are left.
    pub(crate) http: Option<Vec<At<String>>>,
    /// Paths that are left, as the tool sees them: `read /data/acme`.
    pub(crate) paths: Option<Vec<At<String>>>,
    /// Names of environment variables that are left.
    pub(crate) environment: Option<Vec<At<String>>>,
    /// Names of secrets that may still be used.
    pub(crate) secrets: Option<Vec<At<String>>>,
    /// Where a tenant's own values of secrets are, by the secrets' names: `{ env = "ACME_TOKEN" }`.
    /// Default: the value that all share. Not for tools.
    pub(crate) secret_values: BTreeMap<String, At<From>>,
    /// Names of secrets that may still be read.
    pub(crate) reveal: Option<Vec<At<String>>>,
    /// Keys that are left.
    pub(crate) kv: Option<Vec<At<String>>>,
    /// Other tools that may still be called.
    pub(crate) invoke: Option<Vec<At<String>>>,
    /// The isolation of a tenant's calls from others. Not for tools: a tool has its component's.
    pub(crate) isolation: Option<At<Isolation>>,
}

impl Network {
    /// Returns the file with the proxy's URL, if it is in one.
    pub(crate) fn proxy_file(&self) -> Option<&At<String>> {
        match &self.proxy.as_ref()?.value {
            Either::Short(_) => None,
            Either::Table(from) => from.file.as_ref(),
        }
    }
}

impl Narrowing {
    /// Returns the lists of rules, each with its kind.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (GrantKind, &Vec<At<String>>)> {
        let lists = [
            (GrantKind::Http, &self.http),
            (GrantKind::Directories, &self.paths),
            (GrantKind::Environment, &self.environment),
            (GrantKind::Secrets, &self.secrets),
            (GrantKind::Reveal, &self.reveal),
            (GrantKind::Kv, &self.kv),
            (GrantKind::Invoke, &self.invoke),
        ];
        lists.into_iter().filter_map(|(kind, list)| Some((kind, list.as_ref()?)))
    }
}

impl Grants {
    /// Returns the grants that are no more than a rule, each with its kind.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (GrantKind, &At<String>)> {
        let lists = [
            (GrantKind::Reveal, &self.reveal),
            (GrantKind::Kv, &self.kv),
            (GrantKind::Invoke, &self.invoke),
        ];
        lists.into_iter().flat_map(|(kind, lines)| lines.iter().map(move |line| (kind, line)))
    }

    /// Returns the rules, each with its kind, its text in an overlay and its place.
    pub(crate) fn rules(&self) -> Vec<(GrantKind, String, &Range<usize>)> {
        let http = self.http.iter().map(|line| match &line.value {
            Either::Short(rule) => (GrantKind::Http, rule.clone(), &line.span),
            Either::Table(HttpTable { rule, .. }) => {
                (GrantKind::Http, rule.value.clone(), &rule.span)
            }
        });
        let directories =
            self.directories.iter().map(|At { value: Directory { name, access, .. }, .. }| {
                (GrantKind::Directories, format!("{access} {}", name.value), &name.span)
            });
        let variables = self.environment.iter();
        let variables =
            variables.map(|(name, at)| (GrantKind::Environment, name.clone(), &at.span));
        // A secret without `destination` can only be revealed.
        let secrets = self.secrets.iter().filter(|(_, at)| at.value.destination.is_some());
        let secrets = secrets.map(|(name, at)| (GrantKind::Secrets, name.clone(), &at.span));
        let listed = self.lists().map(|(kind, line)| (kind, line.value.clone(), &line.span));
        http.chain(directories).chain(variables).chain(secrets).chain(listed).collect()
    }
}

/// A number, or text with a unit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum Amount {
    Text(String),
    Number(i64),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// Returns the JSON Schema of the file.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}

/// Reports a name that a component or a publisher cannot have.
pub(crate) fn check_name(
    problems: &mut Problems<'_>,
    span: &Range<usize>,
    owner: &str,
    name: &str,
) {
    if !is_name(name) {
        let hint = format!("use 1 to {} of the characters A-Z a-z 0-9 _ -", Definition::MAX_NAME);
        let message = format!("`{}` cannot be a {owner}'s name", name.escape_debug());
        problems.error(span, message, hint);
    }
}

/// Returns true if a component or a publisher can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=Definition::MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
