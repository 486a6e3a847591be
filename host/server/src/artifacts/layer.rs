//! Wraps a tool, so that it reads artifacts as files and returns long content as links.
//!
//! A service with an artifact store wraps each of its tools in this middleware, which is code that
//! runs before and after the tool's own code. Before the call it looks at the arguments: a property
//! whose schema has `"format": "toolcell-file"` holds the URI of an artifact. The artifact is
//! copied to a file that the tool sees read-only for this one call, and the URI is replaced by the
//! file's path. A URI that is not one of the call's own tenant is a fault of the arguments. The
//! copies of all calls of a tenant are bounded, because a call has them also while it waits for a
//! cell. Native tools (Rust closures) do not run in a sandbox into which files can be mounted, so
//! their arguments stay as they are.
//!
//! After a successful call, each content part over
//! [`ArtifactOptions::threshold`](super::ArtifactOptions::threshold) is stored as an artifact and
//! replaced by a link. A part that cannot be stored stays in the result.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use toolcell::call::CallFiles;
use toolcell::outcome::{Fault, Part, Resource, ResourceContent};
use toolcell::tenant::Reservation;
use toolcell::tool::{Handler, HandlerFuture, Invocation, Middleware};
use toolcell::{CallResult, Outcome, Refusal, Tool};

use super::members::each_member;
use super::{Artifact, ArtifactError, Artifacts, id_of};

/// The schema format of a property whose value is a reference to an artifact.
const FORMAT: &str = "toolcell-file";

/// The middleware around the handler of one tool.
pub(crate) struct Layer {
    artifacts: Artifacts,
    /// The properties whose values are references.
    files: HashSet<String>,
}

impl Layer {
    /// Wraps the tool in this middleware.
    pub(crate) fn wrap(tool: Tool, artifacts: &Artifacts) -> Tool {
        let schema = tool.definition().parameters.as_ref();
        let properties = schema.and_then(|schema| schema["properties"].as_object());
        let is_file = |schema: &Value| schema["format"] == FORMAT;
        let files = properties.into_iter().flatten().filter(|(_, schema)| is_file(schema));
        let files = files.map(|(name, _)| name.clone()).collect();
        tool.with_middleware(Self { artifacts: artifacts.clone(), files })
    }

    /// Mounts the files that the arguments refer to. Returns the call, and the room of its files;
    /// the call unchanged if there are none.
    async fn with_files(
        &self,
        invocation: Arc<Invocation>,
    ) -> Result<(Arc<Invocation>, Option<Reservation>), Refusal> {
        let mut wanted = Vec::new();
        // Reads the text: the tree of large arguments takes up to a hundred times their bytes.
        let _ = each_member(&invocation.call.arguments, |name, value| {
            if self.files.contains(name)
                && let Ok(uri) = serde_json::from_str::<String>(value)
            {
                wanted.push((name.to_owned(), uri));
            }
        });
        if wanted.is_empty() {
            return Ok((invocation, None));
        }
        let (artifacts, tenant) = (self.artifacts.clone(), invocation.context.tenant.clone());
        let mounted = tokio::task::spawn_blocking(move || {
            mount_files(&artifacts, tenant.as_deref(), &wanted)
        });
        // Logged here, within the span of the request.
        let mounted = mounted.await.map_err(|error| failed(&error))?;
        let mounted = mounted.map_err(|error| failed(&error))?;
        let Mounted { paths, files, room } = mounted?;
        let arguments = with_paths(&invocation.call.arguments, &paths);
        Ok((Arc::new(invocation.with_files(arguments, files)), Some(room)))
    }

    /// Replaces long content of the result by links.
    async fn with_links(&self, tenant: Option<String>, result: CallResult) -> CallResult {
        let CallResult::Outcome(Outcome::Ok(mut output)) = result else { return result };
        let above = self.artifacts.options().threshold;
        let is_long = |part: &Part| content(part).is_some_and(|(bytes, _)| bytes.len() > above);
        if !output.parts.iter().any(is_long) {
            return CallResult::Outcome(Outcome::Ok(output));
        }
        let (artifacts, parts) = (self.artifacts.clone(), std::mem::take(&mut output.parts));
        let linked = tokio::task::spawn_blocking(move || {
            parts.into_iter().map(|part| linked(&artifacts, tenant.as_deref(), part)).collect()
        });
        match linked.await {
            Ok(parts) => output.parts = parts,
            Err(error) => return CallResult::Refusal(failed(&error)),
        }
        CallResult::Outcome(Outcome::Ok(output))
    }
}

impl Middleware for Layer {
    fn call<'a>(&'a self, next: &'a dyn Handler, invocation: Arc<Invocation>) -> HandlerFuture<'a> {
        Box::pin(async move {
            let tenant = invocation.context.tenant.clone();
            // Native tools have no cell: they look up references themselves.
            let (invocation, room) = if self.files.is_empty() || next.digest().is_none() {
                (invocation, None)
            } else {
                match self.with_files(invocation).await {
                    Ok(mounted) => mounted,
                    Err(refusal) => return CallResult::Refusal(refusal),
                }
            };
            let result = next.call(invocation).await;
            drop(room);
            self.with_links(tenant, result).await
        })
    }
}

/// The paths of files by property.
type Paths = HashMap<String, String>;

/// The files of one call.
struct Mounted {
    paths: Paths,
    files: CallFiles,
    room: Reservation,
}

/// Replaces references in the arguments by paths.
fn with_paths(arguments: &str, paths: &Paths) -> String {
    let mut text = String::with_capacity(arguments.len());
    let _ = each_member(arguments, |name, value| {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        match paths.get(name) {
            Some(path) => text.push_str(&Value::from(path.as_str()).to_string()),
            None => text.push_str(value),
        }
    });
    text.push('}');
    text
}

/// Creates files for the references. Refuses references with faults, and a call whose files have no
/// room beside those of the tenant's other calls.
fn mount_files(
    artifacts: &Artifacts,
    tenant: Option<&str>,
    wanted: &[(String, String)],
) -> std::io::Result<Result<Mounted, Refusal>> {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for (property, uri) in wanted {
        match id_of(uri).map(|id| artifacts.artifact(tenant, id)) {
            Some(Ok(artifact)) => found.push((property, artifact)),
            // The arguments are right: the file cannot be read.
            Some(Err(ArtifactError::Io(error))) => return Err(error),
            _ => {
                let pointer = format!("/{}", property.replace('~', "~0").replace('/', "~1"));
                let got: String = uri.chars().take(100).collect();
                let expected = format!("the URI of one of your artifacts: {}ID", Artifacts::URI);
                let fault = Fault::new(pointer, expected);
                faults.push(fault.with_actual(Value::from(got).to_string()));
            }
        }
    }
    if !faults.is_empty() {
        return Ok(Err(Refusal::InvalidArguments(faults)));
    }
    let sizes = found.iter().map(|(_, artifact)| (artifact.info.id.as_str(), artifact.info.size));
    let bytes = sizes.collect::<HashMap<_, _>>().into_values().sum();
    let Some(room) = artifacts.room_for_copies(tenant, bytes) else {
        return Ok(Err(Refusal::overloaded()));
    };
    let files = CallFiles::new()?;
    let (mut paths, mut added) = (Paths::new(), HashMap::new());
    for (index, (property, artifact)) in found.iter().enumerate() {
        // An artifact that several properties name is copied once, so a call writes no more than
        // its tenant may store.
        let path = match added.entry(artifact.info.id.as_str()) {
            Entry::Occupied(path) => path.into_mut(),
            Entry::Vacant(place) => place.insert(add(&files, index, artifact)?),
        };
        paths.insert((*property).clone(), path.clone());
    }
    Ok(Ok(Mounted { paths, files, room }))
}

/// Adds an artifact under its own name. Returns the path that the tool sees.
fn add(files: &CallFiles, index: usize, artifact: &Artifact) -> std::io::Result<String> {
    let name = artifact.info.name.as_deref().unwrap_or(&artifact.info.id);
    match files.add(name, artifact.reader()) {
        // The file of another property has this name.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            files.add(&format!("{index}-{}", artifact.info.id), artifact.reader())
        }
        added => added,
    }
}

/// Returns the bytes of a part, and their media type.
fn content(part: &Part) -> Option<(&[u8], &str)> {
    match part {
        Part::Text { text } => Some((text.as_bytes(), "text/plain; charset=utf-8")),
        Part::Image(media) | Part::Audio(media) => Some((&media.data, &media.mime_type)),
        Part::Resource(Resource { mime_type, content, .. }) => {
            let unnamed = match content {
                ResourceContent::Text { .. } => "text/plain; charset=utf-8",
                ResourceContent::Bytes { .. } => "application/octet-stream",
            };
            Some((content.as_bytes(), mime_type.as_deref().unwrap_or(unnamed)))
        }
        Part::ResourceLink { .. } => None,
    }
}

fn linked(artifacts: &Artifacts, tenant: Option<&str>, part: Part) -> Part {
    let Some((bytes, mime_type)) =
        content(&part).filter(|(bytes, _)| bytes.len() > artifacts.options().threshold)
    else {
        return part;
    };
    match artifacts.put(tenant, bytes, None, mime_type) {
        Ok(info) => Part::ResourceLink {
            name: Some(info.link_name()),
            uri: info.uri,
            description: None,
            mime_type: Some(info.mime_type),
            size: Some(info.size),
        },
        Err(error) => {
            tracing::warn!(%error, tenant, "a long part could not be stored as an artifact: it stays in the result");
            part
        }
    }
}

/// The refusal of a call whose artifacts could not be read or stored.
fn failed(error: &dyn std::error::Error) -> Refusal {
    tracing::error!(%error, "the artifacts of a call could not be read or stored");
    Refusal::Unavailable
}
