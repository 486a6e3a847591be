//! Evaluates the steps of a parsed expression on a stack.
//!
//! In: steps from `parse`. Out: one finite number.
//! Invariants: every value on the stack is finite, so an error names the first step whose result is
//! not a finite real number.

use crate::functions::{factorial, remainder};
use crate::parse::{Operation, Step};

/// Runs the steps and returns the value that they leave on the stack.
///
/// # Errors
/// The first step without a finite real value, with its column.
pub(crate) fn evaluate(steps: &[Step]) -> Result<f64, String> {
    let mut stack: Vec<f64> = Vec::new();
    for Step { operation, column } in steps {
        let (value, spelled) = match operation {
            Operation::Push(value) => (*value, String::new()),
            Operation::Negate => (-pop(&mut stack)?, String::new()),
            Operation::Percent => (pop(&mut stack)? / 100.0, String::new()),
            Operation::Factorial => {
                let n = pop(&mut stack)?;
                (factorial(n), format!("{}!", operand(n)))
            }
            Operation::Call(function, count) => {
                let arguments = stack.split_off(stack.len().saturating_sub(*count));
                let value = (function.apply)(&arguments);
                let list: Vec<String> = arguments.iter().take(4).map(f64::to_string).collect();
                (value, format!("{}({})", function.name, list.join(", ")))
            }
            Operation::Add => binary(&mut stack, '+', |a, b| a + b)?,
            Operation::Subtract => binary(&mut stack, '-', |a, b| a - b)?,
            Operation::Multiply => binary(&mut stack, '*', |a, b| a * b)?,
            Operation::Power => binary(&mut stack, '^', f64::powf)?,
            Operation::Divide | Operation::Remainder if stack.last() == Some(&0.0) => {
                return Err(format!("division by zero at column {column}"));
            }
            Operation::Divide => binary(&mut stack, '/', |a, b| a / b)?,
            Operation::Remainder => binary(&mut stack, '%', remainder)?,
        };
        if value.is_nan() {
            return Err(format!("{spelled} at column {column} is not defined in the real numbers"));
        }
        if value.is_infinite() {
            return Err(format!(
                "{spelled} at column {column} has no finite value, or one too large for a 64-bit float"
            ));
        }
        stack.push(value);
    }
    pop(&mut stack)
}

/// Pops an operand. The parser balances the steps, so an empty stack is a bug; it is reported as an
/// error instead of a panic.
fn pop(stack: &mut Vec<f64>) -> Result<f64, String> {
    stack.pop().ok_or_else(|| "internal fault: an operand is missing".to_owned())
}

fn binary(
    stack: &mut Vec<f64>,
    sign: char,
    apply: fn(f64, f64) -> f64,
) -> Result<(f64, String), String> {
    let (right, left) = (pop(stack)?, pop(stack)?);
    let value = apply(left, right);
    let spelled = if value.is_finite() {
        String::new()
    } else {
        format!("{} {sign} {}", operand(left), operand(right))
    };
    Ok((value, spelled))
}

fn operand(value: f64) -> String {
    if value < 0.0 { format!("({value})") } else { value.to_string() }
}
