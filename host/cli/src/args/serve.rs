//! The command line of `serve`, which runs the server, and of `tenant`, which manages API keys.
//!
//! clap, the parser, fills [`ServeArgs`] and [`TenantArgs`]; `commands/serve` and
//! `commands/tenant.rs` take them. The comments of structs and fields are the text of `--help`.
//! Options that exclude each other are declared here, for example `--stdio` (the MCP protocol on
//! standard input and output) and `--listen`. Addresses must be an IP address with a port.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueHint};

use crate::print::units::whole_number_parser;
use crate::print::{Size, Time};

/// The default address of a server.
const ADDRESS: &str = "127.0.0.1:8700";
/// The options that have no meaning with `--stdio`.
const HTTP_ONLY: [&str; 8] =
    ["listen", "tls_cert", "tls_key", "behind_proxy", "hosts", "origins", "shutdown_delay", "json"];

/// Parses an IP address with a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("write an IP address and a port, for example `{ADDRESS}` or `[::1]:8700`")
    })
}

/// Serve the approved tools to agents, over HTTP and MCP
///
/// HTTP is at `/v1`, described at `/openapi.json`, MCP at `/mcp`. With `--stdio` it is MCP on
/// standard input and output.
///
/// The tools are those of the components in `toolcell.toml` that you have approved. The
/// configuration, its lock and the components are watched: a change is served without a restart. A
/// running call ends with the version that it began with. If a changed file cannot be used, the
/// server goes on with what it served before.
///
/// Without tenants and API keys the server listens on loopback only, and accepts every request from
/// there. Once `toolcell.toml` has a `[tenants.NAME]` or there is a key, each request needs a key:
/// `toolcell tenant add NAME` makes one. A running server then requires keys until it ends, even if
/// the tenants and keys are removed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  toolcell serve                                   HTTP at http://127.0.0.1:8700/v1, MCP at http://127.0.0.1:8700/mcp
  toolcell serve --stdio                           MCP for a desktop client or an editor
  toolcell serve --check                           what would be served, and what is wrong
  toolcell serve --listen 0.0.0.0:8700 --tls-cert cert.pem --tls-key key.pem

SIGTERM and Ctrl-C end the server: it takes no new calls, waits up to `--drain-timeout` for running calls, and cancels the rest.
SIGHUP ends the server too, unless this signal is ignored.

Exit status: 0 it served until a signal ended it, or `--check` found nothing wrong, 2 bad usage, 1 anything else")]
pub(crate) struct ServeArgs {
    /// Speak MCP on standard input and output, for a client that starts the server by itself
    #[arg(long, conflicts_with_all = HTTP_ONLY)]
    pub(crate) stdio: bool,
    /// With `--stdio`: serve this tenant's tools
    // With an option that excludes `--stdio`, clap requires no `--stdio`.
    #[arg(long, value_name = "NAME", requires = "stdio", conflicts_with_all = HTTP_ONLY)]
    pub(crate) tenant: Option<String>,
    /// Listen at this address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = ADDRESS, value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// The server's certificate chain, as PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A proxy in front of the server does TLS
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key"])]
    pub(crate) behind_proxy: bool,
    /// Accept this name in `Host`; `localhost` and the loopback addresses are always accepted
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// Accept browser pages of this origin, for instance `https://app.example.com`
    #[arg(long = "origin", value_name = "ORIGIN")]
    pub(crate) origins: Vec<String>,
    /// Time in which requests are still accepted once a signal ends the server, while `/ready`
    /// answers 503; none if absent
    #[arg(long, value_name = "TIME")]
    pub(crate) shutdown_delay: Option<Time>,
    /// Time for running calls once a signal ends the server
    #[arg(long, value_name = "TIME", default_value_t = Time(Duration::from_secs(30)))]
    pub(crate) drain_timeout: Time,
    /// Check the files for changes this often
    #[arg(long, value_name = "TIME", default_value_t = Time(Duration::from_secs(1)))]
    pub(crate) watch_interval: Time,
    /// The most calls that run at once
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = whole_number_parser(1..=1000_u32))]
    pub(crate) max_cells: u32,
    /// Offer a search instead of the list if there are more tools than this
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub(crate) search_threshold: usize,
    /// Keep artifacts in this directory; without it they are lost when the server ends
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) artifact_dir: Option<PathBuf>,
    /// Keep a part of a result as an artifact if the part is longer than this
    #[arg(long, value_name = "SIZE", default_value_t = Size(256 << 10))]
    pub(crate) artifact_threshold: Size,
    /// The most bytes of artifacts that one tenant can keep
    #[arg(long, value_name = "SIZE", default_value_t = Size(256 << 20))]
    pub(crate) artifact_quota: Size,
    /// Time after which an artifact is removed
    #[arg(long, value_name = "TIME", default_value_t = Time(Duration::from_secs(24 * 60 * 60)))]
    pub(crate) artifact_lifetime: Time,
    /// Answer `GET /metrics` for Prometheus at this loopback address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Send spans to this OpenTelemetry collector, for example `http://127.0.0.1:4318`
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) otlp: Option<String>,
    /// Load everything, say what is wrong, and end
    #[arg(long)]
    pub(crate) check: bool,
    /// Print one JSON object a line instead
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make, list and revoke the API keys of tenants
#[derive(Debug, clap::Args)]
pub(crate) struct TenantArgs {
    #[command(subcommand)]
    pub(crate) command: TenantCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Add a tenant to `toolcell.toml` if it is not there, and make its first key
    ///
    /// The key is shown this once: what is kept is its digest. A running server accepts it from the
    /// next request on.
    #[command(after_long_help = "Example:\n  toolcell tenant add acme")]
    Add {
        /// The tenant
        name: String,
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Make a further key for a tenant, for instance before the old one is revoked
    #[command(after_long_help = "Example:\n  toolcell tenant add-key acme")]
    AddKey {
        /// The tenant
        name: String,
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key: a running server refuses it from the next request on
    #[command(after_long_help = "Example:\n  toolcell tenant revoke-key k_0123456789ab")]
    RevokeKey {
        /// The key's id, as `toolcell tenant list` shows it
        id: String,
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// List the tenants and the ids of their keys
    List {
        /// Print one JSON object instead
        #[arg(long)]
        json: bool,
    },
}
