//! Values of expressions, and the errors for invalid ones.

use std::collections::BTreeMap;

use super::*;
use crate::evaluate::evaluate;

fn value(text: &str) -> Result<f64, String> {
    let variables = BTreeMap::from([("x".to_owned(), 3.0), ("rate".to_owned(), 0.05)]);
    parse(text, &variables).and_then(|steps| evaluate(&steps))
}

#[test]
fn operators_follow_usual_precedence() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("2^3^2", 512.0),
        ("2 ** 10", 1024.0),
        ("-2^2", -4.0),
        ("2^-1", 0.5),
        ("2^3!", 64.0),
        ("-3!", -6.0),
        ("10 - 4 - 3", 3.0),
        ("100 / 10 / 5", 2.0),
        ("--2", 2.0),
        ("- + - - 2", -2.0),
        ("2 * -3", -6.0),
        ("6 ÷ 4 × 2 − 1", 2.0),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn percentage_and_remainder_are_distinguished() {
    for (text, expected) in [
        ("17 % 5", 2.0),
        ("-7 % 12", 5.0),
        ("200 * 15%", 30.0),
        ("50%", 0.5),
        ("(5%) - 2", -1.95),
        ("50%%", 0.005),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
    assert!(
        value("5% - 2")
            .unwrap_err()
            .starts_with("`%` at column 2 could be a percentage or a remainder")
    );
}

#[test]
fn names_stand_for_functions_constants_and_variables() {
    for (text, expected) in [
        ("sqrt(16) + max(1, 5, 3)", 9.0),
        ("log(8, 2) + log(1000, 10)", 6.0),
        ("x * rate * 100", 15.000000000000002),
        ("hypot(3, 4)", 5.0),
        ("round(e, 2)", 2.72),
        ("cos(π) + sin(0)", -1.0),
        ("mean(1, 2, 3, 6)", 3.0),
        ("degrees(tau / 2)", 180.0),
        ("factorial(5) - 5!", 0.0),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn error_names_its_column() {
    for (text, message) in [
        ("", "expected a number at column 1, found the end"),
        ("2 + * 3", "expected a number at column 5, found `*`"),
        ("2 3", "expected an operator at column 3, found `3`; multiplication needs `*`"),
        ("2pi", "expected an operator at column 2, found `pi`; multiplication needs `*`"),
        ("(1 + 2", "expected `)` at column 7 for the `(` at column 1, found the end"),
        ("1)", "`)` at column 2 closes nothing"),
        (
            "1,000",
            "unexpected `,` at column 2: it separates the arguments of a function; write 1000 or 1_000 for a thousand",
        ),
        ("squirt(4)", "unknown function `squirt` at column 1; known: abs"),
        ("Sqrt(4)", "unknown function `Sqrt` at column 1: did you mean `sqrt`?"),
        ("y + 1", "unknown name `y` at column 1; known: rate, x, pi, π, tau, τ, e"),
        ("1 + sin", "`sin` at column 5 is a function: write sin(…)"),
        ("x(2)", "`x` at column 1 is a number, not a function; multiplication needs `*`"),
        (
            "log(8)",
            "`log` at column 1 takes 2 arguments, found 1: write ln(x), log10(x) or log(x, base)",
        ),
        ("max()", "`max` at column 1 takes at least 1 argument, found 0"),
        ("1 / 0", "division by zero at column 3"),
        ("5 % (1 - 1)", "division by zero at column 3"),
        ("sqrt(-1)", "sqrt(-1) at column 1 is not defined in the real numbers"),
        ("ln(0)", "ln(0) at column 1 has no finite value, or one too large for a 64-bit float"),
        (
            "10 ^ 400",
            "10 ^ 400 at column 4 has no finite value, or one too large for a 64-bit float",
        ),
        ("(-8) ^ 0.5", "(-8) ^ 0.5 at column 6 is not defined in the real numbers"),
        ("171!", "171! at column 4 has no finite value, or one too large for a 64-bit float"),
        ("2.5!", "2.5! at column 4 is not defined in the real numbers"),
    ] {
        let refusal = value(text).expect_err(text);
        assert!(refusal.starts_with(message), "{text}: {refusal}");
    }
}

#[test]
fn nesting_is_bounded_but_length_is_not() {
    let nested = |levels| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
    assert_eq!(value(&nested(MAX_DEPTH - 1)), Ok(1.0));
    assert_eq!(
        value(&nested(MAX_DEPTH)),
        Err("nested deeper than 64 levels at column 65".to_owned())
    );
    assert!(value(&"2^".repeat(1000)).unwrap_err().starts_with("nested deeper"));
    assert_eq!(value(&format!("{}1", "-".repeat(1000))), Ok(1.0));
    assert_eq!(value(&vec!["1"; 1000].join("+")), Ok(1000.0));
}

#[test]
fn invalid_variable_names_are_refused() {
    let odd = BTreeMap::from([("2x".to_owned(), 1.0)]);
    assert!(parse("1", &odd).unwrap_err().starts_with("`2x` cannot be the name of a variable"));
}
