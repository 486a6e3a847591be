//! The network settings of tools' requests: an operator's proxy, and additional certificate
//! authorities.
//!
//! Reading a configuration passes the section `[network]` to `Network::of`, which reads the files
//! that it names and reports invalid settings with their lines. `apply` gives them to an [`Egress`],
//! the part of the library that sends tools' requests, also to a running one after a reload.
//!
//! The proxy's password is in no message, no page and no `Debug`. A configuration that is not
//! approved has no network settings. A file that other users can write to is not read,
//! since its writer could read the requests of tools.

use std::path::Path;

use toolcell::http::{Egress, Proxy, RootCertificates};

use super::options::ReadOptions;
use super::secrets::{self, Origin};
use crate::paths::files;
use crate::problem::Problems;
use crate::schema::{self, At, Either};

/// The hint for a value from another source.
const FROM_FILE: &str = "write `proxy = { file = \"FILE\" }`";

/// The network settings of tools' requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Network {
    pub(crate) proxy: Option<Proxy>,
    /// The source of the proxy's URL, if it is not in the configuration itself.
    pub(crate) origin: Option<Origin>,
    pub(crate) root_certificates: RootCertificates,
}

impl Network {
    /// Returns the settings of a section. Invalid ones are left out and reported.
    pub(crate) fn of(
        problems: &mut Problems<'_>,
        (base, options): (&Path, &ReadOptions),
        said: &schema::Network,
    ) -> Self {
        let mut network = Self::default();
        if let Some(proxy) = &said.proxy {
            network.set_proxy(problems, (base, options), proxy);
        }
        for root in &said.root_certificates {
            let path = base.join(&root.value);
            let read = files::authorities(&path).map_err(|error| (error.to_string(), error.hint()));
            let added = read.and_then(|text| {
                let bad = |bad: toolcell::grants::InvalidRule| {
                    (format!("`{}`: {}", path.display(), bad.problem), bad.hint)
                };
                network.root_certificates.clone().with_pem(text.as_bytes()).map_err(bad)
            });
            match added {
                Ok(roots) => network.root_certificates = roots,
                Err((message, hint)) => problems.error(&root.span, message, hint),
            }
        }
        network
    }

    /// Gives an egress the proxy and the certificate authorities.
    pub(crate) fn apply(&self, egress: &Egress) {
        egress.replace(self.proxy.clone(), self.root_certificates.clone());
    }

    fn set_proxy(
        &mut self,
        problems: &mut Problems<'_>,
        (base, options): (&Path, &ReadOptions),
        said: &At<Either<String, schema::From>>,
    ) {
        let url = match &said.value {
            Either::Short(url) => Ok(url.clone()),
            Either::Table(from) => {
                let Some((origin, _)) =
                    secrets::origin(problems, base, "`proxy`", (from, &said.span))
                else {
                    return;
                };
                let value = origin
                    .value(options, "`proxy`", FROM_FILE)
                    .map(|value| value.expose().to_owned());
                self.origin = Some(origin);
                value
            }
        };
        let proxy = url.and_then(|url| Proxy::new(&url).map_err(|bad| (bad.to_string(), bad.hint)));
        match proxy {
            Ok(proxy) => self.proxy = Some(proxy),
            Err((message, hint)) => problems.error(&said.span, message, hint),
        }
    }
}
