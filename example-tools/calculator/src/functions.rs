//! The constants and functions that an expression may use, by name.
//!
//! Invariants: a function receives only finite numbers, and as many as its entry allows. Its result
//! may be any float; the evaluator refuses results that are not finite.

use std::f64::consts;
use std::ops::RangeInclusive;

/// A function of the language.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) arguments: RangeInclusive<usize>,
    pub(crate) apply: fn(&[f64]) -> f64,
}

/// No upper limit of arguments: the length of the expression bounds them.
const MANY: usize = usize::MAX;

/// Every function, by name.
pub(crate) static FUNCTIONS: &[Function] = &[
    Function { name: "abs", arguments: 1..=1, apply: |x| x[0].abs() },
    Function { name: "acos", arguments: 1..=1, apply: |x| x[0].acos() },
    Function { name: "asin", arguments: 1..=1, apply: |x| x[0].asin() },
    Function { name: "atan", arguments: 1..=1, apply: |x| x[0].atan() },
    Function { name: "atan2", arguments: 2..=2, apply: |x| x[0].atan2(x[1]) },
    Function { name: "cbrt", arguments: 1..=1, apply: |x| x[0].cbrt() },
    Function { name: "ceil", arguments: 1..=1, apply: |x| x[0].ceil() },
    Function { name: "cos", arguments: 1..=1, apply: |x| x[0].cos() },
    Function { name: "cosh", arguments: 1..=1, apply: |x| x[0].cosh() },
    Function { name: "degrees", arguments: 1..=1, apply: |x| x[0].to_degrees() },
    Function { name: "exp", arguments: 1..=1, apply: |x| x[0].exp() },
    Function { name: "factorial", arguments: 1..=1, apply: |x| factorial(x[0]) },
    Function { name: "floor", arguments: 1..=1, apply: |x| x[0].floor() },
    Function { name: "hypot", arguments: 2..=2, apply: |x| x[0].hypot(x[1]) },
    Function { name: "ln", arguments: 1..=1, apply: |x| x[0].ln() },
    Function { name: "log", arguments: 2..=2, apply: |x| logarithm(x[0], x[1]) },
    Function { name: "log10", arguments: 1..=1, apply: |x| x[0].log10() },
    Function { name: "log2", arguments: 1..=1, apply: |x| x[0].log2() },
    Function {
        name: "max",
        arguments: 1..=MANY,
        apply: |x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    },
    Function {
        name: "mean",
        arguments: 1..=MANY,
        apply: |x| x.iter().sum::<f64>() / x.len() as f64,
    },
    Function {
        name: "min",
        arguments: 1..=MANY,
        apply: |x| x.iter().copied().fold(f64::INFINITY, f64::min),
    },
    Function { name: "mod", arguments: 2..=2, apply: |x| remainder(x[0], x[1]) },
    Function { name: "radians", arguments: 1..=1, apply: |x| x[0].to_radians() },
    Function {
        name: "round",
        arguments: 1..=2,
        apply: |x| round(x[0], x.get(1).copied().unwrap_or(0.0)),
    },
    Function {
        name: "sign",
        arguments: 1..=1,
        apply: |x| if x[0] == 0.0 { 0.0 } else { x[0].signum() },
    },
    Function { name: "sin", arguments: 1..=1, apply: |x| x[0].sin() },
    Function { name: "sinh", arguments: 1..=1, apply: |x| x[0].sinh() },
    Function { name: "sqrt", arguments: 1..=1, apply: |x| x[0].sqrt() },
    Function { name: "sum", arguments: 1..=MANY, apply: |x| x.iter().sum() },
    Function { name: "tan", arguments: 1..=1, apply: |x| x[0].tan() },
    Function { name: "tanh", arguments: 1..=1, apply: |x| x[0].tanh() },
    Function { name: "trunc", arguments: 1..=1, apply: |x| x[0].trunc() },
];

/// Every constant, by name.
pub(crate) static CONSTANTS: &[(&str, f64)] = &[
    ("pi", consts::PI),
    ("π", consts::PI),
    ("tau", consts::TAU),
    ("τ", consts::TAU),
    ("e", consts::E),
];

/// The function called `name`.
pub(crate) fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// The constant called `name`.
pub(crate) fn constant(name: &str) -> Option<f64> {
    CONSTANTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Returns `n!`: NaN for fractions and negative numbers, infinity from 171 on, where the result
/// exceeds every finite float.
pub(crate) fn factorial(n: f64) -> f64 {
    if n < 0.0 || n.fract() != 0.0 {
        f64::NAN
    } else if n > 170.0 {
        f64::INFINITY
    } else {
        (2..=n as u32).map(f64::from).product()
    }
}

/// Returns the remainder with the sign of the divisor, as on a clock: 10 hours before 3 o'clock is
/// `mod(3 - 10, 12)` = 5.
pub(crate) fn remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
}

/// Returns the logarithm of `x` to `base`. The bases 2 and 10 have functions of their own, which
/// are exact where `ln(x) / ln(base)` is not: log(1000, 10) is 3.
fn logarithm(x: f64, base: f64) -> f64 {
    if base == 10.0 {
        x.log10()
    } else if base == 2.0 {
        x.log2()
    } else {
        x.log(base)
    }
}

/// Rounds half away from zero to `digits` after the decimal point; negative: before it. Scales
/// through decimal text, because 1.005 has no exact binary form and the decimal digits are what is
/// to be rounded.
fn round(x: f64, digits: f64) -> f64 {
    if digits.fract() != 0.0 || digits.abs() > 300.0 {
        return f64::NAN;
    }
    let scaled = |by: i32| format!("{x}e{by}").parse::<f64>().map_or(f64::NAN, f64::round);
    let digits = digits as i32;
    let whole = scaled(digits);
    if !whole.is_finite() {
        return x;
    }
    format!("{whole}e{}", -digits).parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_sorted_and_shadow_no_constant() {
        assert!(FUNCTIONS.is_sorted_by(|a, b| a.name < b.name));
        assert!(FUNCTIONS.iter().all(|function| constant(function.name).is_none()));
    }

    #[test]
    fn factorial_over_float_range_is_infinite() {
        assert_eq!(factorial(0.0), 1.0);
        assert_eq!(factorial(20.0), 2_432_902_008_176_640_000.0);
        assert!(factorial(170.0).is_finite() && factorial(171.0).is_infinite());
        assert!(factorial(-1.0).is_nan() && factorial(2.5).is_nan());
    }

    #[test]
    fn rounding_follows_the_printed_decimals() {
        assert_eq!(round(1.005, 2.0), 1.01);
        assert_eq!(round(-2.5, 0.0), -3.0);
        assert_eq!(round(1250.0, -2.0), 1300.0);
        assert_eq!(round(1e300, 20.0), 1e300);
        assert!(round(1.0, 0.5).is_nan());
    }

    #[test]
    fn remainder_has_the_sign_of_the_divisor() {
        assert_eq!(
            [remainder(-7.0, 12.0), remainder(7.0, -12.0), remainder(6.0, 3.0)],
            [5.0, -5.0, 0.0]
        );
    }
}
