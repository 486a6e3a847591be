//! A file beside the tool: an error names it.

pub fn fail() -> ! {
    panic!("Error: out of cheese")
}
