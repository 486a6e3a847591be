//! Builds and installs: the JavaScript runtimes, the packages, and programs from the registries of
//! other languages.

pub(crate) mod js_runtime;
pub(crate) mod package;
pub(crate) mod registries;
