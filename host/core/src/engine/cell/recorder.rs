//! Records the requests of tools in a dry run (a run without effects), from which the grants that
//! they need can be derived.
//!
//! An embedder (the program that uses this library) gives a [`Recorder`] to an engine
//! (`EngineBuilder::dry_run`). While a tool runs, the host functions note each HTTP request,
//! secret, key, tool and path, granted or not, and the embedder reads the list with `recorded`.
//! `toolcell` suggests grants from it.
//! The list has no duplicates and at most 1000 requests and 1000 paths, however often a tool asks.
//! Its texts are untrusted; the query of a URL is left out.
//! Not here: the answers that the tool gets in a dry run (`imports`), and the grants that the list
//! amounts to ([`Suggestion`](crate::grants::Suggestion)).

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use toolcell_contract::grants::{Access, Method, Target, rights::Request};

/// Requests, and paths, that are kept. A tool may make a hundred thousand requests.
const MAX_RECORDED: usize = 1000;
/// Bytes of the text of a request, or of a path.
const MAX_TEXT: usize = 1 << 10;

/// Records the requests of tools: see
/// [`EngineBuilder::dry_run`](crate::runtime::EngineBuilder::dry_run). Cheap to clone; clones share
/// their records.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Recording>>);

/// The requests of tools in a dry run, granted or not. At most 1000 requests and 1000 paths are
/// recorded.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Recording {
    /// Requests, secrets and keys, in the order of their first use.
    pub requests: Vec<Request<'static>>,
    /// For each secret, by its name, the requests that it was to be sent with.
    pub secrets: BTreeMap<String, Vec<(Method, Target)>>,
    /// Files and directories, by their path as the tool sees it.
    pub paths: BTreeMap<String, PathUse>,
    /// True if the tool read its environment. A tool gets all its variables at once, so the host
    /// cannot see which ones it needs.
    pub environment: bool,
}

/// The use of a path by a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathUse {
    /// The access: reading or writing.
    pub access: Access,
    /// True if the tool opened the path as a directory.
    pub is_directory: bool,
}

impl Recorder {
    /// Creates an empty recorder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the records so far.
    #[must_use]
    pub fn recording(&self) -> Recording {
        self.0.lock().clone()
    }

    /// Records a request. Returns false if it is too long, or if the list is full.
    pub(crate) fn request(&self, request: &Request<'_>) -> bool {
        let text = request.to_string();
        // The text form omits what may be private, for example the query of a URL.
        let Ok(request) = Request::parse(&text) else { return false };
        let requests = &mut self.0.lock().requests;
        if requests.contains(&request) {
            return true;
        }
        let is_kept = text.len() <= MAX_TEXT && requests.len() < MAX_RECORDED;
        if is_kept {
            requests.push(request);
        }
        is_kept
    }

    /// Records that a secret was to be injected into a request.
    pub(crate) fn secret(&self, name: &str, method: Method, target: &Target) {
        let secrets = &mut self.0.lock().secrets;
        let uses = secrets.values().map(Vec::len).sum::<usize>();
        let place = (method, target.clone());
        if uses < MAX_RECORDED
            && target.as_str().len() <= MAX_TEXT
            && !secrets.get(name).is_some_and(|all| all.contains(&place))
        {
            secrets.entry(name.to_owned()).or_default().push(place);
        }
    }

    /// Records the use of a path.
    pub(crate) fn path(&self, path: String, access: Access, is_directory: bool) {
        let paths = &mut self.0.lock().paths;
        if path.len() > MAX_TEXT || paths.len() >= MAX_RECORDED && !paths.contains_key(&path) {
            return;
        }
        let known = paths.entry(path).or_insert(PathUse { access, is_directory });
        known.access = known.access.max(access);
        known.is_directory |= is_directory;
    }

    /// Records that the environment was read.
    pub(crate) fn environment(&self) {
        self.0.lock().environment = true;
    }
}

/// Resolves a path against a directory. The result is absolute, in its shortest form, and never
/// above the root.
pub(crate) fn joined(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_bounded_and_deduplicated() {
        let recorder = Recorder::new();
        let asked = |text: &str| recorder.request(&Request::parse(text).unwrap());
        for index in 0..2 * MAX_RECORDED {
            assert_eq!(asked(&format!("kv read {index}")), index < MAX_RECORDED);
            recorder.path(format!("/{index}"), Access::Read, false);
        }
        assert!(asked("kv read 0") && !asked(&format!("kv read {}", "x".repeat(MAX_TEXT))));
        recorder.path("/0".into(), Access::Write, false);
        recorder.path("/0".into(), Access::Read, true);
        let Recording { requests, paths, .. } = recorder.recording();
        assert_eq!((requests.len(), paths.len()), (MAX_RECORDED, MAX_RECORDED));
        assert_eq!(paths["/0"], PathUse { access: Access::Write, is_directory: true });
    }

    #[test]
    fn url_queries_are_not_recorded() {
        let recorder = Recorder::new();
        assert!(recorder.request(&Request::parse("GET https://a.example/x?q=private").unwrap()));
        assert_eq!(recorder.recording().requests[0].to_string(), "GET https://a.example/x");
    }

    #[test]
    fn paths_are_joined_and_normalised() {
        let paths = [("/", "a"), ("/data", "a/../b/"), ("/data", "../.."), ("/", ".")];
        let found = paths.map(|(directory, path)| joined(directory, path));
        assert_eq!(found, ["/a", "/data/b", "/", "/"], "{paths:?}");
    }
}
