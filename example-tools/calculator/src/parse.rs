//! Parses an expression into steps for a stack machine, in postfix order.
//!
//! In: an expression and the caller's variables. Out: steps that `evaluate` runs in a loop.
//! Invariants: recursion is at most `2 * MAX_DEPTH` levels deep for every text; the steps pop no
//! more values than they push.
//! Not here: arithmetic.
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = unary (("*" | "/" | "%") unary)*
//! unary   = ("-" | "+")* power
//! power   = postfix ("^" unary)?
//! postfix = atom ("!" | "%")*
//! atom    = number | name | name "(" sum ("," sum)* ")" | "(" sum ")"
//! ```

use std::collections::BTreeMap;

use crate::functions::{self, CONSTANTS, FUNCTIONS, Function};
use crate::token::{Kind, Token, is_name, tokens};

/// Levels of nested parentheses and powers. Far more than people write, and far below what
/// overflows the stack.
pub(crate) const MAX_DEPTH: usize = 64;

/// One step, and the column that an error names if it fails.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) operation: Operation,
    pub(crate) column: usize,
}

/// The effect of a step on the stack.
#[derive(Debug)]
pub(crate) enum Operation {
    Push(f64),
    Negate,
    Factorial,
    Percent,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    /// Pops as many arguments as the number says.
    Call(&'static Function, usize),
}

/// Parses an expression.
///
/// # Errors
/// The expected token, its column, and the token found there.
pub(crate) fn parse(text: &str, variables: &BTreeMap<String, f64>) -> Result<Vec<Step>, String> {
    if let Some(odd) = variables.keys().find(|name| !is_name(name)) {
        return Err(format!(
            "`{odd}` cannot be the name of a variable: use letters, digits and `_`, and begin with a letter"
        ));
    }
    let mut parser =
        Parser { tokens: tokens(text)?, at: 0, depth: 0, variables, steps: Vec::new() };
    parser.sum()?;
    let Token { kind, column } = parser.next();
    match kind {
        Kind::End => Ok(parser.steps),
        Kind::Sign(',') => Err(format!(
            "unexpected `,` at column {column}: it separates the arguments of a function; \
             write 1000 or 1_000 for a thousand"
        )),
        Kind::Sign(')') => Err(format!("`)` at column {column} closes nothing")),
        Kind::Sign(_) | Kind::Number(_) | Kind::Name(_) => Err(format!(
            "expected an operator at column {column}, found {kind}; multiplication needs `*`"
        )),
    }
}

struct Parser<'v> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    variables: &'v BTreeMap<String, f64>,
    steps: Vec<Step>,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<(), String> {
        self.deeper(|parser| {
            parser.product()?;
            while let Some((sign, column)) = parser.take_sign(&['+', '-']) {
                parser.product()?;
                parser.emit(if sign == '+' { Operation::Add } else { Operation::Subtract }, column);
            }
            Ok(())
        })
    }

    fn product(&mut self) -> Result<(), String> {
        self.unary()?;
        while let Some((sign, column)) = self.take_sign(&['*', '/', '%']) {
            self.unary()?;
            let operation = match sign {
                '*' => Operation::Multiply,
                '/' => Operation::Divide,
                _ => Operation::Remainder,
            };
            self.emit(operation, column);
        }
        Ok(())
    }

    /// Parses a run of signs in a loop, so that only powers recurse.
    fn unary(&mut self) -> Result<(), String> {
        self.deeper(|parser| {
            let mut minus = None;
            while let Some((sign, column)) = parser.take_sign(&['-', '+']) {
                if sign == '-' {
                    minus = if minus.is_some() { None } else { Some(column) };
                }
            }
            parser.power()?;
            if let Some(column) = minus {
                parser.emit(Operation::Negate, column);
            }
            Ok(())
        })
    }

    fn power(&mut self) -> Result<(), String> {
        self.postfix()?;
        if let Some((_, column)) = self.take_sign(&['^']) {
            self.unary()?;
            self.emit(Operation::Power, column);
        }
        Ok(())
    }

    /// `%` is a remainder if an operand follows, otherwise a percentage. Before `+` and `-` it
    /// could be either and is refused, because a guess could give a wrong number silently.
    fn postfix(&mut self) -> Result<(), String> {
        self.atom()?;
        loop {
            match (&self.tokens[self.at], self.tokens.get(self.at + 1).map(|token| &token.kind)) {
                (Token { kind: Kind::Sign('!'), column }, _) => {
                    let column = *column;
                    self.at += 1;
                    self.emit(Operation::Factorial, column);
                }
                (Token { kind: Kind::Sign('%'), column }, Some(Kind::Sign('+' | '-'))) => {
                    return Err(format!(
                        "`%` at column {column} could be a percentage or a remainder: write (5%) - 2 or mod(5, -2)"
                    ));
                }
                (
                    Token { kind: Kind::Sign('%'), column },
                    Some(Kind::End | Kind::Sign(')' | ',' | '*' | '/' | '^' | '%')),
                ) => {
                    let column = *column;
                    self.at += 1;
                    self.emit(Operation::Percent, column);
                }
                _ => return Ok(()),
            }
        }
    }

    fn atom(&mut self) -> Result<(), String> {
        let Token { kind, column } = self.next();
        match kind {
            Kind::Number(value) => {
                self.emit(Operation::Push(value), column);
                Ok(())
            }
            Kind::Name(name) if self.tokens[self.at].kind == Kind::Sign('(') => {
                self.call(&name, column)
            }
            Kind::Name(name) => {
                let value = self.value(&name, column)?;
                self.emit(Operation::Push(value), column);
                Ok(())
            }
            Kind::Sign('(') => {
                self.sum()?;
                self.close(column)
            }
            Kind::Sign(_) | Kind::End => {
                Err(format!("expected a number at column {column}, found {kind}"))
            }
        }
    }

    fn call(&mut self, name: &str, column: usize) -> Result<(), String> {
        let Some(function) = functions::function(name) else {
            if self.variables.contains_key(name) || functions::constant(name).is_some() {
                return Err(format!(
                    "`{name}` at column {column} is a number, not a function; multiplication needs `*`"
                ));
            }
            return Err(unknown(
                "function",
                name,
                column,
                FUNCTIONS.iter().map(|function| function.name),
            ));
        };
        let opened = self.next().column;
        let mut count = 0;
        if self.tokens[self.at].kind != Kind::Sign(')') {
            loop {
                self.sum()?;
                count += 1;
                if self.take_sign(&[',']).is_none() {
                    break;
                }
            }
        }
        self.close(opened)?;
        if !function.arguments.contains(&count) {
            return Err(wrong_count(function, count, column));
        }
        self.emit(Operation::Call(function, count), column);
        Ok(())
    }

    /// Looks up a name. The caller's variables shadow constants such as `e`.
    fn value(&self, name: &str, column: usize) -> Result<f64, String> {
        if let Some(value) = self.variables.get(name).copied().or_else(|| functions::constant(name))
        {
            return Ok(value);
        }
        if functions::function(name).is_some() {
            return Err(format!("`{name}` at column {column} is a function: write {name}(…)"));
        }
        let known = self
            .variables
            .keys()
            .map(String::as_str)
            .chain(CONSTANTS.iter().map(|(known, _)| *known));
        Err(unknown("name", name, column, known))
    }

    fn close(&mut self, opened: usize) -> Result<(), String> {
        let Token { kind, column } = self.next();
        if kind == Kind::Sign(')') {
            return Ok(());
        }
        Err(format!("expected `)` at column {column} for the `(` at column {opened}, found {kind}"))
    }

    fn deeper(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        // A parenthesis costs two levels: its sum and the unary inside.
        if self.depth >= 2 * MAX_DEPTH {
            let column = self.tokens[self.at].column;
            return Err(format!("nested deeper than {MAX_DEPTH} levels at column {column}"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn take_sign(&mut self, wanted: &[char]) -> Option<(char, usize)> {
        match &self.tokens[self.at] {
            Token { kind: Kind::Sign(sign), column } if wanted.contains(sign) => {
                let taken = (*sign, *column);
                self.at += 1;
                Some(taken)
            }
            _ => None,
        }
    }

    /// Returns the next token. The last token, [`Kind::End`], is returned again and again.
    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn emit(&mut self, operation: Operation, column: usize) {
        self.steps.push(Step { operation, column });
    }
}

fn wrong_count(function: &Function, count: usize, column: usize) -> String {
    let name = function.name;
    let (least, most) = (*function.arguments.start(), *function.arguments.end());
    let wanted = match (least, most) {
        (1, 1) => "1 argument".to_owned(),
        (least, usize::MAX) => format!("at least {least} argument"),
        (least, most) if least == most => format!("{least} arguments"),
        (least, most) => format!("{least} or {most} arguments"),
    };
    let hint =
        if name == "log" && count == 1 { ": write ln(x), log10(x) or log(x, base)" } else { "" };
    format!("`{name}` at column {column} takes {wanted}, found {count}{hint}")
}

/// Suggests a known name that begins alike, if there is one; otherwise lists all known names.
fn unknown<'n>(
    what: &str,
    name: &str,
    column: usize,
    known: impl Iterator<Item = &'n str>,
) -> String {
    let known: Vec<&str> = known.collect();
    let lower = name.to_lowercase();
    let alike = known.iter().find(|known| {
        let known = known.to_lowercase();
        known == lower
            || (lower.len() > 2
                && (known.starts_with(&lower) || lower.starts_with(&known))
                && known.len() > 2)
    });
    match alike {
        Some(alike) => {
            format!("unknown {what} `{name}` at column {column}: did you mean `{alike}`?")
        }
        None => format!("unknown {what} `{name}` at column {column}; known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests;
