use std::sync::Arc;

use serde_json::Value;
use toolcell::{Definition, Invocation, Tool};

fn main() {
    let definition = Definition::new("greet", "Greets.").unwrap();
    let _ = Tool::native(definition, async |_: Value, _: Arc<Invocation>, _: bool| Value::Null);
}
