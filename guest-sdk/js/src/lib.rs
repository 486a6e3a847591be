//! The JavaScript runtime of toolcell: QuickJS as a tool component.
//!
//! `toolcell build` passes the author's modules to [`load`], which evaluates them once; a snapshot
//! of the resulting memory is the component, so a call starts with evaluated modules. [`calls`]
//! implements the exports of the toolcell world, [`host`] offers its imports to JavaScript, and
//! the JavaScript files in `sdk` and `web` are the module `toolcell` that an author imports.
//! [`rejections`] tracks rejected promises without a handler.

mod calls;
mod ending;
mod host;
#[cfg(feature = "intl")]
mod intl;
mod load;
mod outcome;
mod rejections;
mod sdk;
mod state;

mod wasi {
    #![allow(unsafe_code, reason = "generated bindings")]

    wit_bindgen::generate!({
        path: "wit",
        world: "runtime",
        with: { "wasi:io/poll@0.2.6": toolcell_guest::bindings::wasi::io::poll },
        generate_all,
    });
}
