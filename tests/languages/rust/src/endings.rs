//! A second file of the tool: the error names it.

pub fn fail() -> ! {
    panic!("Error: out of cheese")
}
