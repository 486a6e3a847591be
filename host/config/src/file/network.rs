//! The network settings of tools' requests: an operator's proxy, and additional certificate
//! authorities.
//!
//! In: `[network]`, and the files that it names. Out: [`Network`], and from it an [`Egress`].
//! Invariants: the proxy's password is in no message, no page and no `Debug`; a configuration that
//! is not approved has no network settings; a file that other users can write to is not read, since
//! its writer could read the requests of tools.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use toolcell::http::{Egress, Proxy, Roots};

use super::secrets::{self, Origin};
use crate::file::{self, At, Either};
use crate::paths::files;
use crate::problem::Problems;
use crate::{Configuration, ReadOptions};

/// The text that replaces a password.
const HIDDEN: &str = "***";
/// The hint for a value from another source.
const FROM_FILE: &str = "write `proxy = { file = \"FILE\" }`";

/// The network settings of tools' requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Network {
    pub(crate) proxy: Option<Proxy>,
    /// The source of the proxy's URL, if it is not in the configuration itself.
    pub(crate) origin: Option<Origin>,
    pub(crate) roots: Roots,
    /// The files of the certificate authorities, also of a section that is not used.
    pub(crate) files: Vec<PathBuf>,
    /// Files with the proxy's password, also of a section that is not used.
    pub(crate) unread: Vec<PathBuf>,
}

impl Network {
    /// Returns only the files that a section names, which tools must not be granted.
    pub(crate) fn unused(base: &Path, said: &file::Network) -> Self {
        let mut network = Self::default();
        network.files.extend(said.roots.iter().map(|root| base.join(&root.value)));
        if let Some(At { value: Either::Table(file::From { file: Some(file), .. }), .. }) =
            &said.proxy
        {
            network.unread.push(base.join(&file.value));
        }
        network
    }

    /// Returns the settings of a section. Invalid ones are left out and reported.
    pub(crate) fn of(
        problems: &mut Problems<'_>,
        (base, options): (&Path, &ReadOptions),
        said: &file::Network,
    ) -> Self {
        let mut network = Self::unused(base, said);
        if let Some(proxy) = &said.proxy {
            network.set_proxy(problems, (base, options), proxy);
        }
        for (root, path) in said.roots.iter().zip(network.files.clone()) {
            let read = files::authorities(&path).map_err(|error| (error.to_string(), error.hint()));
            let added = read.and_then(|text| {
                let bad = |bad: toolcell::grants::BadRule| {
                    (format!("`{}`: {}", path.display(), bad.problem), bad.hint)
                };
                network.roots.clone().with_pem(text.as_bytes()).map_err(bad)
            });
            match added {
                Ok(roots) => network.roots = roots,
                Err((message, hint)) => problems.error(&root.span, message, hint),
            }
        }
        network
    }

    fn set_proxy(
        &mut self,
        problems: &mut Problems<'_>,
        (base, options): (&Path, &ReadOptions),
        said: &At<Either<String, file::From>>,
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

impl Configuration {
    /// Returns an egress with the proxy of `[network]`, if there is one, and its certificate
    /// authorities in addition to those of the public internet.
    pub fn egress(&self) -> Egress {
        let egress = Egress::new();
        egress.replace(self.network.proxy.clone(), self.network.roots.clone());
        egress
    }
}

/// Replaces the proxy's password in the text of a configuration. Line numbers stay the same.
pub fn without_password(text: &str) -> String {
    match password(text).and_then(|range| {
        Some((text.get(..range.start)?, text.get(range.clone())?, text.get(range.end..)?))
    }) {
        Some((before, hidden, after)) => {
            format!("{before}{HIDDEN}{}{after}", "\n".repeat(hidden.matches('\n').count()))
        }
        None => text.to_owned(),
    }
}

/// Returns true if the text contains the proxy's credentials.
pub(crate) fn has_password(text: &str) -> bool {
    password(text).is_some()
}

/// Returns the range of the proxy's credentials, or that of the whole value if their place cannot
/// be determined.
fn password(text: &str) -> Option<Range<usize>> {
    let (tree, _) = DeTable::parse_recoverable(text);
    let DeValue::Table(network) = tree.get_ref().get("network")?.get_ref() else { return None };
    let proxy = network.get("proxy")?;
    let DeValue::String(url) = proxy.get_ref() else { return None };
    let (_, after) = url.split_once("://").unwrap_or(("", url));
    after.rsplit_once('@')?;
    let span = proxy.span();
    let written = text.get(span.clone())?;
    let inner = || {
        let start = written.find("://")? + 3;
        let end = written.rfind('@').filter(|end| *end >= start && !written.contains('\\'))?;
        // A user name alone can be a token.
        let colon = written.get(start..end)?.find(':').map_or(start, |colon| start + colon + 1);
        Some(span.start + colon..span.start + end)
    };
    Some(inner().unwrap_or(span.start + 1..span.end - 1))
}
