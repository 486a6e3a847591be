//! A calculator: evaluates an arithmetic expression to one number.
//!
//! Flow: text → `token` → `parse` → steps → `evaluate` → number. `functions` is the table of names.

mod evaluate;
mod functions;
mod parse;
mod token;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use toolcell_guest::{tool, tools};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What to calculate, for example `2 * (3 + 4)^2` or `price * (1 + rate)`. Operators: `+ - * /
    /// ^`, `!` after a number, `%` as a remainder between two numbers and as a percentage after
    /// one; `^` binds to the right and before a minus sign. Functions: abs, acos, asin, atan,
    /// atan2(y, x), cbrt, ceil, cos, cosh, degrees, exp, factorial, floor, hypot(x, y), ln, log(x,
    /// base), log10, log2, max, mean, min, mod(a, b), radians, round(x, digits), sign, sin, sinh,
    /// sqrt, sum, tan, tanh, trunc. Constants: pi, tau, e. Angles are in radians. No thousands
    /// separators.
    #[schemars(length(min = 1, max = 2000))]
    expression: String,
    /// Values for names in the expression, for example `{"price": 80, "rate": 0.19}`.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    variables: BTreeMap<String, f64>,
}

/// A number that is written without a fraction where it has none: 4 and not 4.0.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // 2^53: up to here a float represents every whole number exactly.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() <= EXACT {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Evaluates an arithmetic expression with 64-bit floating-point numbers and returns the number.
/// Use it instead of calculating in your head. What is not a finite real number, such as a division
/// by zero, is an error that says where.
#[tool(
    title = "Calculator",
    read_only,
    idempotent,
    output,
    max_execution = "1s",
    attributes = { "category": "math" }
)]
fn calculator(args: Args) -> Result<Number, String> {
    let steps = parse::parse(&args.expression, &args.variables)?;
    evaluate::evaluate(&steps).map(Number)
}

tools![calculator];
