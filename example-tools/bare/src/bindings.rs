//! Generated bindings of the world `toolbox` of `wit/toolcell.wit`.

#![allow(missing_docs, unreachable_pub, unsafe_code, rust_2018_idioms, reason = "generated")]
#![allow(
    clippy::all,
    clippy::unwrap_used,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]

wit_bindgen::generate!({ path: "../../wit", world: "toolbox" });

use super::Component;

export!(Component with_types_in self);
