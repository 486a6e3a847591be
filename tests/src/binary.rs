//! Components made byte by byte, where no assembler goes along.

/// What a component starts with.
pub const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
/// What a core module starts with; alone, the smallest there is.
pub const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// Sections of a component.
pub mod of_component {
    /// One core module.
    pub const CORE_MODULE: u8 = 1;
    /// Core instances.
    pub const CORE_INSTANCES: u8 = 2;
    /// One component.
    pub const COMPONENT: u8 = 4;
    /// Instances of components.
    pub const INSTANCES: u8 = 5;
    /// What is known elsewhere by another number.
    pub const ALIASES: u8 = 6;
    /// Types.
    pub const TYPES: u8 = 7;
    /// Canonical functions.
    pub const CANON: u8 = 8;
    /// A function that runs by itself.
    pub const START: u8 = 9;
}

/// Sections of a core module.
pub mod of_module {
    /// Types.
    pub const TYPES: u8 = 1;
    /// Functions by their types.
    pub const FUNCTIONS: u8 = 3;
    /// Tables.
    pub const TABLES: u8 = 4;
    /// Memories.
    pub const MEMORIES: u8 = 5;
    /// Globals.
    pub const GLOBALS: u8 = 6;
    /// Segments of table elements.
    pub const ELEMENTS: u8 = 9;
    /// Bodies of functions.
    pub const CODE: u8 = 10;
}

/// A section of either, without an effect.
pub const CUSTOM: u8 = 0;

/// A number of variable length.
#[must_use]
pub fn number(value: usize) -> Vec<u8> {
    let byte = (value & 0x7f) as u8;
    if value < 0x80 { vec![byte] } else { [vec![byte | 0x80], number(value >> 7)].concat() }
}

/// A list: its length and its items.
#[must_use]
pub fn list(count: usize, items: &[u8]) -> Vec<u8> {
    [&number(count), items].concat()
}

/// A section with its length.
#[must_use]
pub fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], number(content.len()).as_slice(), content].concat()
}

/// A component of these sections.
#[must_use]
pub fn component(sections: &[u8]) -> Vec<u8> {
    [COMPONENT, sections].concat()
}

/// A module of these sections.
#[must_use]
pub fn module(sections: &[u8]) -> Vec<u8> {
    [MODULE, sections].concat()
}

/// A component with a module of as many functions, all of one type, and these bodies.
#[must_use]
pub fn functions(count: usize, bodies: &[u8]) -> Vec<u8> {
    let functions = section(of_module::FUNCTIONS, &list(count, &vec![0; count]));
    let code = section(of_module::CODE, &list(count, bodies));
    component(&section(of_component::CORE_MODULE, &module(&[functions, code].concat())))
}

/// A component of one function with this body.
#[must_use]
pub fn function(body: &[u8]) -> Vec<u8> {
    functions(1, &list(body.len(), body))
}
