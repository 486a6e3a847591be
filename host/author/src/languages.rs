//! The languages that a tool can be written in: each one's way from sources to a component.
//!
//! A component is the WebAssembly file that toolcell runs. The module `project` detects the
//! language of a project and calls the `build` function of its module: `c`, `python` and `rust`
//! start a compiler that is installed on the machine, `js` needs none, because its runtime is part
//! of this crate. The remaining modules are shared: starting programs with few environment
//! variables (`native`), a temporary folder (`scratch`), the definitions of a built component
//! (`tools`), and Python's virtual environments (`venv`).

pub(crate) mod c;
pub(crate) mod js;
mod native;
pub(crate) mod python;
pub(crate) mod rust;
mod scratch;
pub(crate) mod tools;
pub(crate) mod venv;

/// Returns the message that this program begins to make a component of this file.
fn makes(program: &str, source: &str) -> String {
    format!("{program} makes a component of `{source}`, which takes some seconds")
}
