use serde_json::Value;
use toolcell::{Definition, Tool};

fn main() {
    let definition = Definition::new("greet", "Greets.").unwrap();
    let _ = Tool::native(definition, async |_: Value| 7);
}
