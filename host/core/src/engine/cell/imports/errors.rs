//! Implements `wasi:io/error`: the text of a stream's error that a guest can read.
//!
//! A guest (the WebAssembly code of a tool) gets an error object when a read or write of a stream
//! fails, and may ask for its text. The text is chosen by the type of the error: the kind of an I/O
//! error, the name of an HTTP error, or "the operation failed". It is fixed, and the same in every
//! host environment: no backtrace, no path, no version, no text of the operating system or of a
//! library.

use std::io;

use toolcell_contract::controls::enforced;
use wasmtime::component::Resource;
use wasmtime_wasi::{WasiView as _, p2::bindings::io::error};
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;

use crate::engine::cell::Cell;

impl error::Host for Cell {}

impl error::HostError for Cell {
    fn to_debug_string(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<String> {
        let error = self.ctx().table.get(&error)?;
        Ok(if enforced!(ErrorTexts) { text(error) } else { format!("{error:?}") })
    }

    fn drop(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<()> {
        self.ctx().table.delete(error)?;
        Ok(())
    }
}

/// Returns the text of a failure, by the type of the error.
fn text(error: &wasmtime::Error) -> String {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        // The standard library's word for the kind, without the system's text.
        return error.kind().to_string();
    }
    match error.downcast_ref::<ErrorCode>() {
        // The name of the case, without its fields.
        Some(code) => {
            let code = format!("{code:?}");
            let name = code
                .split(|c: char| !c.is_alphanumeric())
                .find(|word| !["", "ErrorCode"].contains(word));
            format!("HTTP: {}", name.unwrap_or("failed"))
        }
        None => "the operation failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn error_text_reveals_no_host_detail() {
        let path = || io::Error::new(io::ErrorKind::NotFound, "/srv/secret is not there");
        for (error, expected) in [
            (io::Error::from(Errno::NOSPC).into(), "no storage space"),
            (io::Error::from(Errno::BUSY).into(), "resource busy"),
            (io::Error::from(Errno::IO).into(), "uncategorized error"),
            (path().into(), "entity not found"),
            (wasmtime::Error::from(path()).context("at /srv"), "entity not found"),
            (ErrorCode::ConnectionTerminated.into(), "HTTP: ConnectionTerminated"),
            (ErrorCode::InternalError(Some("at /srv".to_owned())).into(), "HTTP: InternalError"),
            (wasmtime::Error::msg("a panic at /srv/main.rs"), "the operation failed"),
        ] {
            assert_eq!(text(&error), expected);
        }
    }
}
