//! Checks of the repository itself: its rules, its pages, its examples, and the proof that each
//! control matters.

mod cases;
mod causes;
mod controls;
mod docs;
mod examples;
mod tidy;

use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder below the root")
}
