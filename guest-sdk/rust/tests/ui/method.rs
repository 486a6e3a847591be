#![allow(unused, reason = "only the misuse matters")]

use toolcell_guest::tool;

struct Counter(u32);

impl Counter {
    /// Counts.
    #[tool]
    fn count(&mut self, by: u32) -> u32 {
        self.0 += by;
        self.0
    }
}

fn main() {}
