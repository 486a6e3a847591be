//! The JavaScript runtime of toolcell: QuickJS as a tool component.
//!
//! `toolcell build` hands the author's modules to [`load`], which evaluates them once; the memory that this leaves is the
//! component. A call then starts with evaluated modules. [`calls`] answers the exports of the toolcell world, [`host`]
//! gives the JavaScript side its imports, and `prelude.js` with `answers.js` is the module `toolcell` that an author imports.
//! [`rejections`] keeps what no promise's handler takes.

mod calls;
mod ending;
mod host;
mod load;
mod modules;
mod outcome;
mod rejections;
mod sdk;
mod state;
mod unused;

mod wasi {
    #![allow(unsafe_code, reason = "generated bindings")]

    wit_bindgen::generate!({ path: "wit", world: "runtime", generate_all });
}
