//! Turns core WebAssembly into components of the contract's world.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The contract's world and the WASI functions that misdeeds need, declared only as far as they are
/// used.
const WORLD: &str = include_str!("wat/world.wit");
const WASI: [(&str, &str); 3] = [
    ("cli.wit", include_str!("wat/cli.wit")),
    ("clocks.wit", include_str!("wat/clocks.wit")),
    ("random.wit", include_str!("wat/random.wit")),
];

/// Assembles text into a component that exports the contract's interface and `exports`. Its module
/// gets the custom `sections`.
pub(crate) fn component(text: &str, exports: &str, sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut module = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for (name, data) in sections {
        let name_length = u8::try_from(name.len()).expect("a short name");
        let content = [&[name_length], name.as_bytes(), data].concat();
        module.push(0);
        // The length as LEB128, padded to five bytes.
        let length = u32::try_from(content.len()).expect("a length");
        module.extend(
            (0..5).map(|at| ((length >> (7 * at)) & 0x7f) as u8 | if at < 4 { 0x80 } else { 0 }),
        );
        module.extend(content);
    }
    let mut resolve = Resolve::default();
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    resolve.push_path(contract).expect("the contract's WIT");
    for (name, text) in WASI {
        resolve.push_str(name, text).expect("a WIT package");
    }
    let package =
        resolve.push_str("world.wit", &WORLD.replace("// more", exports)).expect("a WIT package");
    let world = resolve.select_world(&[package], Some("hostile")).expect("the world");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata");
    wrap(&module)
}

/// Wraps a module, which contains its world as metadata, as a component.
pub(crate) fn wrap(module: &[u8]) -> Vec<u8> {
    ComponentEncoder::default()
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .expect("a component")
}
