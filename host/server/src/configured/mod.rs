//! Serves a `toolcell.toml`: its approved tools, its tenants, the issuer whose tokens it accepts,
//! and changes to them.
//!
//! The command `toolcell serve` uses it, and an embedder (the program that uses this library) can.
//! [`ConfigServer::start`] takes a configuration and its engines (which run WebAssembly), and loads
//! the tools. From it come a [`Service`] with these tools and tenants, and an [`Authenticator`].
//! [`ConfigServer::follow`] then checks the files at an interval, gives changes to both, and calls
//! a closure with a [`Notice`] of each change.
//!
//! Only approved tools are served. A change that cannot be used changes nothing, and `/ready`
//! reports it, as it does components and tenants with a problem. Each report has a public summary,
//! which names no component, tenant or secret, and details for the operator. Not here: output for
//! an operator; the program that serves prints it.

mod issuer;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::OptionFuture;
use toolcell_config::{
    Configuration, Engines, Error, LoadedTools, Reason, ReloadChanges, Reloader,
};

pub use issuer::IssuerError;
use issuer::{Accepted, check, issuer_of};

use crate::auth::{ApiKeyStore, Authenticator, KeyStoreError};
use crate::service::facade::ManyTools;
use crate::service::served::ServedTools;
use crate::service::{Service, ServiceBuilder};

/// The source under which a failed reload is reported.
const CONFIGURATION: &str = "configuration";
/// The source under which components with problems are reported.
const COMPONENTS: &str = "components";

/// The public text for a configuration that was found and is not approved. The operator is told the
/// whole command, with its options.
const NOT_APPROVED: &str = "the operator has not approved it in its present form (`toolcell approve` shows it and asks for your approval)";

/// Serves a configuration and follows its changes.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use toolcell_config::Configuration;
/// use toolcell_server::auth::ApiKeyStore;
/// use toolcell_server::{ConfigServer, HttpServer, ListenOptions};
///
/// let configuration = Configuration::read("toolcell.toml")?;
/// let keys = ApiKeyStore::of_configuration(&configuration)?.ok_or("there is no state directory")?;
/// let engines = configuration.engines().build()?;
/// let configured = ConfigServer::start(configuration, engines).await?;
///
/// let (service, auth) = (configured.service().build()?, configured.authenticator(keys)?);
/// let server = HttpServer::bind(service.clone(), auth.clone(), ListenOptions::default()).await?;
/// tokio::select! {
///     () = server.serve(std::future::pending()) => {}
///     () = configured.follow(&service, Some(&auth), Duration::from_secs(1), |notice| println!("{notice:?}")) => {}
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ConfigServer {
    reloader: Reloader,
    engines: Engines,
    many: ManyTools,
}

/// A change that [`ConfigServer::follow`] has made, or could not make.
#[derive(Debug)]
pub enum Notice {
    /// A changed configuration is served.
    Reloaded {
        /// The changes.
        changes: ReloadChanges,
        /// The configuration that is served now.
        loaded: Arc<LoadedTools>,
    },
    /// A changed configuration cannot be used, or is not approved. The previous one stays in use.
    NotReloaded(Error),
    /// The keys of the issuer cannot be fetched or used. Sent once, not for each attempt.
    IssuerKeysLost {
        /// The reason.
        error: IssuerError,
        /// True if earlier keys stay in use. Without them every token is refused.
        has_earlier: bool,
    },
    /// The keys of the issuer can be fetched and used again.
    IssuerKeysFound,
}

impl ConfigServer {
    /// Loads a configuration for the first time. The problems of components are in
    /// [`LoadedTools::problems`].
    ///
    /// # Errors
    /// As [`Configuration::load`].
    pub async fn start(configuration: Configuration, engines: Engines) -> Result<Self, Error> {
        let reloader = Reloader::start(configuration, engines.clone()).await?;
        Ok(Self { reloader, engines, many: ManyTools::default() })
    }

    /// Sets when a search replaces the list of tools.
    #[must_use]
    pub fn with_many_tools(mut self, many: ManyTools) -> Self {
        self.many = many;
        self
    }

    /// Returns the configuration that is served now. The returned value does not change at a
    /// reload.
    #[must_use]
    pub fn loaded(&self) -> Arc<LoadedTools> {
        self.reloader.loaded()
    }

    /// Returns a builder of a service with the loaded tools, the tenants with their limits and
    /// quotas, and the engines for its metrics.
    pub fn service(&self) -> ServiceBuilder {
        let engines = self.engines.clone();
        Service::builder(self.served(&self.loaded())).engines(move || engines.in_use())
    }

    /// Creates an authenticator with these keys and the configuration's issuer. It accepts every
    /// request until there is a key, a tenant or an issuer. From then on it requires a key or a
    /// token.
    ///
    /// # Errors
    /// [`IssuerError`].
    pub fn authenticator(&self, keys: ApiKeyStore) -> Result<Authenticator, IssuerError> {
        let loaded = self.loaded();
        let is_keyed =
            !loaded.tenants().is_empty() || loaded.issuer().is_some() || keys.may_have_keys();
        let auth = if is_keyed {
            Authenticator::api_keys(keys)
        } else {
            Authenticator::open_until_keys(keys)
        };
        if let Some(said) = loaded.issuer() {
            auth.replace_jwt(Some(issuer_of(said)?));
        }
        Ok(auth)
    }

    /// Fetches the keys that the configuration's issuer publishes, once, and checks that they can
    /// be used.
    ///
    /// # Errors
    /// [`IssuerError`].
    ///
    /// # Cancel safety
    /// When dropped, the connection is closed.
    pub async fn check_issuer(&self) -> Result<(), IssuerError> {
        match self.loaded().issuer() {
            Some(said) => check(said).await,
            None => Ok(()),
        }
    }

    /// Checks the configuration's files at the interval `every`, serves changes, and fetches the
    /// keys that its issuer publishes. `/ready` reports what cannot be served or used. Each change
    /// is passed to `on_notice` after the service has it. Never returns.
    ///
    /// Without `auth`, the configuration's tenants and issuer have no effect on requests: for a
    /// service whose principals are known, for example on standard input and output.
    ///
    /// # Cancel safety
    /// When dropped, the served configuration stays as it is.
    pub fn follow<'a>(
        &'a self,
        service: &'a Service,
        auth: Option<&'a Authenticator>,
        every: Duration,
        on_notice: impl Fn(Notice) + Send + Sync + 'a,
    ) -> impl Future<Output = ()> + Send + 'a {
        // Reported here, before the first request: the caller serves requests concurrently with
        // this future.
        report_problems(service, &self.loaded());
        async move {
            let accepted = auth.map(|auth| Accepted::new(auth, service, &on_notice));
            if let Some(accepted) = &accepted {
                accepted.replace(self.loaded().issuer());
            }
            let reloading = async {
                let mut changes = pin!(self.reloader.changes(every));
                while let Some(change) = changes.next().await {
                    let changes = match change {
                        Ok(changes) => changes,
                        Err(error) => {
                            report_not_reloaded(service, &error);
                            on_notice(Notice::NotReloaded(error));
                            continue;
                        }
                    };
                    let loaded = self.loaded();
                    if let Some(auth) = auth.filter(|_| !loaded.tenants().is_empty()) {
                        auth.require_keys();
                    }
                    service.replace(self.served(&loaded));
                    service.report(CONFIGURATION, None);
                    report_problems(service, &loaded);
                    if let Some(accepted) = &accepted {
                        accepted.replace(loaded.issuer());
                    }
                    on_notice(Notice::Reloaded { changes, loaded });
                }
            };
            tokio::select! {
                Some(()) = OptionFuture::from(accepted.as_ref().map(Accepted::refresh)) => {}
                () = reloading => {}
            }
        }
    }

    /// Returns the tools and tenants of a configuration in the server's types.
    fn served(&self, loaded: &LoadedTools) -> ServedTools {
        ServedTools::new(loaded.registry())
            .with_executor(loaded.executor().clone())
            .with_many_tools(self.many)
    }
}

impl ApiKeyStore {
    /// Opens the store that `toolcell tenant` writes for this configuration. `None` if the
    /// configuration has no file, or was read without a state directory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_configuration(configuration: &Configuration) -> Result<Option<Self>, KeyStoreError> {
        let directory = configuration.state_directory("api-keys");
        directory.map(|directory| Self::open(directory.join("keys.json"))).transpose()
    }
}

/// Reports a changed configuration that is not served. The server stays ready, because it serves
/// the previous one: otherwise all servers that share the file would go out of service at once. The
/// public part has the place of the first error, the operator's part the error.
fn report_not_reloaded(service: &Service, error: &Error) {
    let message = match error.problems().first() {
        Some(problem) => {
            format!("{}:{}:{} cannot be used", problem.file, problem.line, problem.column)
        }
        None if matches!(error, Error::NotApproved { .. }) => {
            format!("the changed configuration is not served: {NOT_APPROVED}")
        }
        None => "the changed configuration cannot be used: the operator's log says why".to_owned(),
    };
    service.report_degraded(CONFIGURATION, message, vec![error.to_string()]);
}

/// Reports components that are not served, or only partly. Only the operator sees which.
fn report_problems(service: &Service, loaded: &LoadedTools) {
    let details: Vec<_> = loaded.problems().iter().map(ToString::to_string).collect();
    let is_unapproved =
        loaded.problems().iter().any(|problem| problem.reason == Reason::ConfigurationNotApproved);
    let summary = match details.len() {
        _ if is_unapproved => format!("nothing of the configuration is served: {NOT_APPROVED}"),
        count => {
            format!("components or tenants with a problem: {count}; the operator's log says which")
        }
    };
    service.report_degraded(COMPONENTS, summary, details);
}
