//! Simulates an empty root directory for a guest that was not granted `/`.
//!
//! A language's library opens a path relative to the preopened directory whose name is a prefix of
//! the path. Without such a directory it never calls the host, so no denial would be reported. This
//! root, a descriptor without a directory of the host behind it, receives all paths outside of the
//! granted directories. The guest (the WebAssembly code of a tool) gets `no-entry`, and observers
//! get an event with the grant that is missing. Commands get only `/dev` in this way.
//! Invariants: no path leads to a file, except for the simulated devices. A path that a tool does
//! not declare causes no event unless it was granted, because the paths that a language's runtime
//! tries do not tell which grant is missing. A dry run (a call that records what it would need)
//! records every path.

use std::sync::Arc;

use toolcell_contract::grants::Access;
use toolcell_contract::grants::rights::{Decision, Denial, Layer, Request, Suggestion};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::{FsResult, bindings::filesystem::types::ErrorCode};

use super::devices::{Device, Simulated};
use crate::engine::cell::{Cell, recorder::joined};

/// The name of the root.
pub(super) const NAME: &str = "/";
/// The name of a directory of devices, which is simulated in the same way.
pub(super) const DEVICES: &str = "/dev";

/// Returns the name of the one behind a descriptor, if it is one.
fn name(table: &ResourceTable, fd: &Resource<Descriptor>) -> Option<&'static str> {
    match Simulated::of(table, fd)? {
        Simulated::Directory(name) => Some(name),
        Simulated::Device(_) => None,
    }
}

impl Cell {
    /// Returns the device at a path below one, or below a granted root.
    pub(super) fn device(&mut self, fd: &Resource<Descriptor>, path: &str) -> Option<Device> {
        let name = match name(&self.table, fd) {
            Some(name) => name,
            None if self.files().place_of(fd).is_some_and(|place| place.is_root) => NAME,
            None => return None,
        };
        Device::at_path(&joined(name, path))
    }

    /// Counts a call into the host, and returns this answer.
    pub(super) fn counted<T>(&mut self, answer: T) -> FsResult<T> {
        self.count_host_call()?;
        Ok(answer)
    }

    /// Refuses a path outside of all granted directories. In a dry run, records and returns the
    /// full path.
    pub(super) fn note_path(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        access: Access,
        is_directory: bool,
    ) -> FsResult<Option<Arc<str>>> {
        let simulated = name(&self.table, fd);
        let directory = match simulated {
            Some(name) => Some(name.into()),
            None => self.files().place_of(fd).and_then(|place| place.path.clone()),
        };
        let Some(directory) = directory else { return Ok(None) };
        let path = joined(&directory, path);
        if let Some(recorder) = &self.scope.resources.recorder {
            recorder.path(path.clone(), access, is_directory);
        }
        let Some(name) = simulated else { return Ok(Some(path.into())) };
        self.count_host_call()?;
        if name == NAME && self.files().is_new_denial(&path, access) {
            self.tell_ungranted(&path, access, is_directory);
        }
        Err(ErrorCode::NoEntry.into())
    }

    fn tell_ungranted(&self, path: &str, access: Access, is_directory: bool) {
        let request = Request::File { access, path: path.into() };
        if let Decision::Denied(mut denial @ Denial { layer, .. }) =
            self.scope.rights.allows(&request)
            && (layer != Layer::Declaration || self.scope.rights.is_granted(&request))
        {
            // Grants are for directories: the suggestion names the parent of a file.
            let above = path
                .rsplit_once('/')
                .map(|(above, _)| above)
                .filter(|above| !above.is_empty() && !is_directory);
            if let (Some(above), Some(_)) = (above, &denial.grant) {
                let mut grant = Suggestion::default();
                grant.add_directory(above, access);
                denial.grant = Some(grant.lines().concat());
            }
            self.scope.invocation.denied(&denial);
        }
    }
}
