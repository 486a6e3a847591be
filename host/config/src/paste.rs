//! Commands that a hint shows: they can be pasted as they stand.
//!
//! In: what was typed. Out: text for a POSIX shell.
//! Invariants: a word stays one word; what decides which configuration and whose approvals are
//! meant is said again.

/// How the next command begins as this one did: its program, and the options that it needs too.
#[derive(Debug, Clone)]
pub struct HintCommand {
    program: String,
    options: Vec<String>,
    call: Vec<String>,
}

/// `toolcell` without options.
impl Default for HintCommand {
    fn default() -> Self {
        Self::new("toolcell", [])
    }
}

impl HintCommand {
    /// A program with options that each of its commands needs.
    pub fn new(program: impl Into<String>, options: impl IntoIterator<Item = String>) -> Self {
        Self { program: program.into(), options: options.into_iter().collect(), call: Vec::new() }
    }

    /// With the tool and the arguments of the call that was typed, for hints that repeat it.
    #[must_use]
    pub fn with_call(self, words: impl IntoIterator<Item = String>) -> Self {
        Self { call: words.into_iter().collect(), ..self }
    }

    /// The tool and the arguments of the call that was typed; empty if none was.
    pub fn call(&self) -> &[String] {
        &self.call
    }

    /// The options, word by word.
    pub fn words(&self) -> impl Iterator<Item = String> {
        self.options.iter().cloned()
    }

    /// A command of ours in backticks: its name, options of its own, and what it is about.
    pub fn command(&self, name: &str, options: &[&str], operands: &[&str]) -> String {
        let end = operands.iter().any(|word| word.starts_with('-')).then_some("--");
        let own = options.iter().chain(&end).chain(operands).copied();
        let words = [&*self.program, name]
            .into_iter()
            .chain(self.options.iter().map(String::as_str))
            .chain(own);
        format!("`{}`", words.map(quoted).collect::<Vec<_>>().join(" "))
    }
}

/// One word of a POSIX shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        for (word, expected) in [
            ("desk.wasm", "desk.wasm"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(reboot)'; reboot", r"'$(reboot)'\''; reboot'"),
            ("~", "'~'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn a_command_is_whole() {
        let again = |program: &str, options: &[&str]| HintCommand {
            program: program.to_owned(),
            options: options.iter().copied().map(str::to_owned).collect(),
            call: Vec::new(),
        };
        let (plain, typed) =
            (again("toolcell", &[]), again("a dir/toolcell", &["--config", "my k.toml"]));
        for (again, options, operands, expected) in [
            (&plain, &[][..], &[][..], "`toolcell approve`"),
            (&plain, &[], &["notes"], "`toolcell approve notes`"),
            (&plain, &["--yes"], &["-x"], "`toolcell approve --yes -- -x`"),
            (
                &typed,
                &["--yes"],
                &["notes"],
                "`'a dir/toolcell' approve --config 'my k.toml' --yes notes`",
            ),
        ] {
            assert_eq!(again.command("approve", options, operands), expected);
        }
    }
}
