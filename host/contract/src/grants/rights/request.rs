//! One request of a tool for access, which its rights allow or deny.
//!
//! The host functions build a [`Request`] whenever a guest (the WebAssembly code of a tool) opens a
//! file, sends an HTTP request, reads a key or calls a tool; the command line parses one from text
//! such as `read /data/x`. The rights ask the request if grants or an overlay (rules that can only
//! narrow a grant) cover it. Its text form appears in denials, logs and explanations; it leaves out
//! the query of a URL, which may hold secret values. The module also gives the smallest rule that
//! allows the request, and the need that an author would declare for it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use crate::definition::check_name;
use crate::grants::{Access, GrantKind, Grants, HttpRule, InvalidRule, Method, Overlay, Target};

/// A single request of a tool.
///
/// # Shape
/// As text: `GET https://example.com/x`, `read /data/x`, `write /data/x`, `environment NAME`,
/// `secret NAME`, `reveal NAME`, `kv read KEY`, `kv write KEY`, `kv list PREFIX`, `invoke TOOL`,
/// `invoke own TOOL`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request<'a> {
    /// A request to a server.
    Http {
        /// Its method.
        method: Method,
        /// Where it goes.
        target: Cow<'a, Target>,
    },
    /// A path in its shortest form, as the tool sees it.
    File {
        /// The kind of access.
        access: Access,
        /// The path.
        path: Cow<'a, str>,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        name: Cow<'a, str>,
    },
    /// A secret that the host puts into a request.
    Secret {
        /// Its name.
        name: Cow<'a, str>,
    },
    /// The value of a secret.
    Reveal {
        /// Its name.
        name: Cow<'a, str>,
    },
    /// A key of the tool's store.
    Key {
        /// The kind of access.
        access: Access,
        /// The key.
        key: Cow<'a, str>,
    },
    /// All keys with a prefix.
    Keys {
        /// The prefix.
        prefix: Cow<'a, str>,
    },
    /// A call of another tool.
    Invoke {
        /// The other tool's name.
        tool: Cow<'a, str>,
        /// True if that tool runs with its own rights, and not with at most those of the calling
        /// tool.
        own: bool,
    },
}

impl Request<'_> {
    /// Parses a request in its notation. The kind may be written in front, by any word that
    /// [`GrantKind`] knows: `http GET https://example.com/x`, `filesystem read /data/x`.
    ///
    /// # Errors
    /// [`InvalidRule`] if the text is not a request.
    pub fn parse(text: &str) -> Result<Request<'static>, InvalidRule> {
        let hint = || GrantKind::listed(|row| row.requests.first().copied());
        let fault = |problem: String| InvalidRule::new(text, problem, format!("write {}", hint()));
        let split = |text: &str| {
            let (word, rest) = text
                .trim_matches(' ')
                .split_once(' ')
                .ok_or_else(|| fault("not a valid request".into()))?;
            Ok((word.to_owned(), rest.trim_matches(' ').to_owned()))
        };
        let file = |access, path: String| {
            crate::grants::check_path(&path)?;
            Ok(Request::File { access, path: path.into() })
        };
        let http = |method: &str, target: &str| {
            let method = Method::parse(method).ok_or_else(|| {
                fault(format!("`{method}` is neither an HTTP method nor another kind of request"))
            })?;
            let target = Target::parse(target).map_err(|problem| fault(problem.to_string()))?;
            Ok(Request::Http { method, target: Cow::Owned(target) })
        };
        let (word, rest) = split(text)?;
        let Some(kind) = GrantKind::of_word(&word) else {
            return match Access::parse(&word) {
                Some(access) => file(access, rest),
                None => http(&word, &rest),
            };
        };
        match kind {
            GrantKind::Http => split(&rest).and_then(|(method, target)| http(&method, &target)),
            GrantKind::Directories => {
                let (word, path) = split(&rest)?;
                let access = Access::parse(&word).ok_or_else(|| {
                    fault(format!("a path needs `read` or `write` in front, and not `{word}`"))
                })?;
                file(access, path)
            }
            GrantKind::Environment => Ok(Request::Environment { name: rest.into() }),
            GrantKind::Secrets => Ok(Request::Secret { name: rest.into() }),
            GrantKind::Reveal => Ok(Request::Reveal { name: rest.into() }),
            GrantKind::Kv => {
                // `kv list` alone lists all keys.
                let (word, key) = rest.split_once(' ').unwrap_or((&rest, ""));
                match (Access::parse(word).filter(|_| !key.is_empty()), word) {
                    (Some(access), _) => Ok(Request::Key { access, key: key.to_owned().into() }),
                    (None, "list") => {
                        Ok(Request::Keys { prefix: key.trim_end_matches('*').to_owned().into() })
                    }
                    (None, _) => {
                        Err(fault("write `kv read KEY`, `kv write KEY` or `kv list PREFIX`".into()))
                    }
                }
            }
            GrantKind::Invoke => {
                let (own, tool) =
                    rest.strip_prefix("own ").map_or((false, rest.as_str()), |tool| (true, tool));
                Ok(Request::Invoke { tool: tool.to_owned().into(), own })
            }
            GrantKind::Scratch => {
                Err(fault("of the scratch directory, name a path in it: `write /scratch/x`".into()))
            }
        }
    }

    /// Returns the need that covers this request, as the author of a tool declares it in any
    /// language: ``kind `kv`, pattern `read KEY` ``.
    #[must_use]
    pub fn declaration(&self) -> String {
        // The operator decides with whose rights the tool runs.
        let pattern =
            if let Self::Invoke { tool, .. } = self { tool.to_string() } else { self.rule() };
        format!("kind `{}`, pattern `{}`", self.kind().row().need, pattern.escape_debug())
    }

    /// Returns the kind of grants that allow this request.
    #[doc(hidden)]
    #[must_use]
    pub fn kind(&self) -> GrantKind {
        match self {
            Self::Http { .. } => GrantKind::Http,
            Self::File { .. } => GrantKind::Directories,
            Self::Environment { .. } => GrantKind::Environment,
            Self::Secret { .. } => GrantKind::Secrets,
            Self::Reveal { .. } => GrantKind::Reveal,
            Self::Key { .. } | Self::Keys { .. } => GrantKind::Kv,
            Self::Invoke { .. } => GrantKind::Invoke,
        }
    }

    /// Returns the smallest rule that allows this request, as in the lists of an [`Overlay`]:
    /// `read notes/*` for `kv list notes/`, the name for a variable or a secret.
    #[must_use]
    pub fn rule(&self) -> String {
        match self {
            Self::Http { method, target } => HttpRule::smallest(*method, target).to_string(),
            Self::File { access, path } => format!("{access} {path}"),
            Self::Environment { name } | Self::Secret { name } | Self::Reveal { name } => {
                name.to_string()
            }
            Self::Key { access, key } => format!("{access} {}", key_pattern(key, false)),
            Self::Keys { prefix } => format!("read {}", key_pattern(prefix, true)),
            Self::Invoke { tool, own } => format!("{}{tool}", if *own { "own " } else { "" }),
        }
    }

    /// Returns true if a rule can name the request. There is no tool whose name is a pattern.
    pub(super) fn has_rule(&self) -> bool {
        if let Self::Invoke { tool, .. } = self { check_name(tool).is_ok() } else { true }
    }

    /// Returns true if these grants cover the request.
    pub(super) fn is_granted(&self, grants: &Grants) -> bool {
        match self {
            Self::Http { method, target } => {
                grants.http.iter().any(|rule| rule.covers(*method, target))
            }
            Self::File { access, path } => crate::grants::path::is_granted(grants, *access, path),
            Self::Environment { name } => grants.environment.contains_key(name.as_ref()),
            Self::Secret { name } => grants.secrets.contains_key(name.as_ref()),
            Self::Reveal { name } => grants.reveal.contains(name.as_ref()),
            Self::Key { access, key } => grants.kv.iter().any(|rule| rule.covers(*access, key)),
            Self::Keys { prefix } => {
                grants.kv.iter().any(|rule| rule.covers_prefix(Access::Read, prefix))
            }
            Self::Invoke { tool, own } => grants.invoke.iter().any(|rule| rule.covers(tool, *own)),
        }
    }

    /// Returns true if the overlay allows the request.
    #[doc(hidden)]
    #[must_use]
    pub fn within(&self, overlay: &Overlay) -> bool {
        let has = |names: &Option<BTreeSet<String>>, name: &str| {
            names.as_ref().is_none_or(|names| names.contains(name))
        };
        match self {
            Self::Http { method, target } => {
                any(&overlay.http, |rule| rule.covers(*method, target))
            }
            Self::File { access, path } => any(&overlay.paths, |rule| rule.covers(*access, path)),
            Self::Environment { name } => has(&overlay.environment, name),
            Self::Secret { name } => has(&overlay.secrets, name),
            Self::Reveal { name } => has(&overlay.reveal, name),
            Self::Key { access, key } => any(&overlay.kv, |rule| rule.covers(*access, key)),
            Self::Keys { prefix } => {
                any(&overlay.kv, |rule| rule.covers_prefix(Access::Read, prefix))
            }
            Self::Invoke { tool, own } => any(&overlay.invoke, |rule| rule.covers(tool, *own)),
        }
    }
}

/// Returns the smallest pattern that covers this key, or every key with this prefix. In a pattern,
/// a `*` stands only at the end, and spaces around it are dropped.
fn key_pattern(key: &str, is_prefix: bool) -> String {
    let start = key.split('*').next().unwrap_or_default();
    if key.starts_with(' ') {
        "*".to_owned()
    } else if is_prefix || start.len() < key.len() || key.ends_with(' ') {
        format!("{start}*")
    } else {
        key.to_owned()
    }
}

/// Returns true if there is no list, or one of its rules covers the request.
fn any<R>(rules: &Option<Vec<R>>, covers: impl Fn(&R) -> bool) -> bool {
    rules.as_ref().is_none_or(|rules| rules.iter().any(covers))
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Without the query, which may hold values that must not appear in a log.
            Self::Http { method, target } => {
                write!(f, "{} {}{}", method.as_str(), target.origin(), target.path())
            }
            Self::File { access, path } => write!(f, "{access} {path}"),
            Self::Key { access, key } => write!(f, "kv {access} {key}"),
            Self::Keys { prefix } if prefix.is_empty() => f.write_str("kv list"),
            Self::Keys { prefix } => write!(f, "kv list {prefix}"),
            Self::Environment { .. }
            | Self::Secret { .. }
            | Self::Reveal { .. }
            | Self::Invoke { .. } => write!(f, "{} {}", self.kind().row().need, self.rule()),
        }
    }
}
