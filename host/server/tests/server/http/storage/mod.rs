//! Tests of artifacts: files that clients upload, and those that tools answer with.

mod artifacts;
mod files;
