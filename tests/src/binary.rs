//! Components written byte by byte, for forms that no assembler produces.

/// The preamble of a component.
pub const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
/// The preamble of a core module, which alone is the smallest module.
pub const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// Section ids of a component.
pub mod of_component {
    /// A core module.
    pub const CORE_MODULE: u8 = 1;
    /// Core instances.
    pub const CORE_INSTANCES: u8 = 2;
    /// A nested component.
    pub const COMPONENT: u8 = 4;
    /// Component instances.
    pub const INSTANCES: u8 = 5;
    /// Aliases.
    pub const ALIASES: u8 = 6;
    /// Types.
    pub const TYPES: u8 = 7;
    /// Canonical functions.
    pub const CANON: u8 = 8;
    /// The start function.
    pub const START: u8 = 9;
}

/// Section ids of a core module.
pub mod of_module {
    /// Types.
    pub const TYPES: u8 = 1;
    /// The types of functions.
    pub const FUNCTIONS: u8 = 3;
    /// Tables.
    pub const TABLES: u8 = 4;
    /// Memories.
    pub const MEMORIES: u8 = 5;
    /// Globals.
    pub const GLOBALS: u8 = 6;
    /// Element segments.
    pub const ELEMENTS: u8 = 9;
    /// Function bodies.
    pub const CODE: u8 = 10;
}

/// Id of a custom section in either; it has no effect.
pub const CUSTOM: u8 = 0;

/// Encodes a number as unsigned LEB128.
#[must_use]
pub fn number(value: usize) -> Vec<u8> {
    let byte = (value & 0x7f) as u8;
    if value < 0x80 { vec![byte] } else { [vec![byte | 0x80], number(value >> 7)].concat() }
}

/// Encodes a list: its length and its items.
#[must_use]
pub fn list(count: usize, items: &[u8]) -> Vec<u8> {
    [&number(count), items].concat()
}

/// Encodes a section: id, length, content.
#[must_use]
pub fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], number(content.len()).as_slice(), content].concat()
}

/// Returns a component of these sections.
#[must_use]
pub fn component(sections: &[u8]) -> Vec<u8> {
    [COMPONENT, sections].concat()
}

/// Returns a core module of these sections.
#[must_use]
pub fn module(sections: &[u8]) -> Vec<u8> {
    [MODULE, sections].concat()
}

/// Returns a component with a module of `count` functions, all of type 0, and these bodies.
#[must_use]
pub fn functions(count: usize, bodies: &[u8]) -> Vec<u8> {
    let functions = section(of_module::FUNCTIONS, &list(count, &vec![0; count]));
    let code = section(of_module::CODE, &list(count, bodies));
    component(&section(of_component::CORE_MODULE, &module(&[functions, code].concat())))
}

/// Returns a component with a module of one function with this body.
#[must_use]
pub fn function(body: &[u8]) -> Vec<u8> {
    functions(1, &list(body.len(), body))
}
