//! The text of a refusal is bounded, even for a schema that multiplies its faults.

use serde_json::{Map, Value, json};
use toolcell::outcome::ReturnRule;
use toolcell::{CallResult, Definition, Executor, Refusal, Tool, ToolError};

use crate::named;

/// Bytes: some hundred words for each fault that is spelled out.
const MAX_TEXT: usize = 16 << 10;

/// A schema of a string below `depth` levels of `breadth` equal alternatives each.
fn alternatives(depth: usize, breadth: usize) -> Value {
    let mut levels = Map::new();
    for level in 0..depth {
        let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
        levels.insert(level.to_string(), json!({"anyOf": vec![next; breadth]}));
    }
    levels.insert(depth.to_string(), json!({"type": "string"}));
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/0"}}, "$defs": levels})
}

fn call(definition: Definition) -> Option<CallResult> {
    let tool = Tool::native(definition, async |arguments: Value| arguments).ok()?;
    Some(crate::call(&Executor::new(), &tool, r#"{"x": 1}"#).result)
}

#[test]
fn nested_alternatives_do_not_multiply_faults() {
    for (depth, breadth) in [(1, 2), (2, 12), (3, 12), (4, 12), (5, 12), (6, 11)] {
        let definition = named("t");
        let schema = alternatives(depth, breadth);
        for definition in
            [definition.clone().with_parameters(schema.clone()), definition.with_output(schema)]
        {
            // The definition is refused as a whole, so there is no text to bound.
            let Some(result) = call(definition) else {
                assert!(depth > 1, "two alternatives are nothing unusual");
                continue;
            };
            let (CallResult::Refusal(Refusal::InvalidArguments(faults))
            | CallResult::ToolError(ToolError::InvalidReturn(ReturnRule::Schema { faults }))) =
                &result
            else {
                panic!("{depth} levels of {breadth}: {result:?}")
            };
            assert!(
                (1..=Refusal::MAX_FAULTS + 1).contains(&faults.len()),
                "{depth} levels of {breadth}: {faults:?}"
            );
            let text = serde_json::to_string(&result).expect("JSON");
            assert!(text.len() < MAX_TEXT, "{depth} levels of {breadth}: {} bytes", text.len());
        }
    }
}
