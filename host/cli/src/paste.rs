//! Commands that a hint shows: they can be pasted as they stand.
//!
//! In: what was typed. Out: text for a POSIX shell.
//! Invariants: a word stays one word; what decides which configuration and whose approvals are meant is said again.

use std::path::Path;

use toolcell::DEFAULT_COMPILE_TIME;

use crate::args::Global;
use crate::env;

/// How the next command begins as this one did: its program, and the options that it needs too.
#[derive(Debug, Default)]
pub(crate) struct Again {
    program: String,
    options: Vec<String>,
}

impl Again {
    /// As it was typed. A variable may have been set for one command alone: it is said as an option.
    pub(crate) fn of(global: &Global) -> Self {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let config = global.config.clone().or_else(env::config);
        let compile_time = Some(global.compile_time).filter(|time| time.0 != DEFAULT_COMPILE_TIME);
        let typed = [
            ("--config", config.as_deref().map(path)),
            ("--state-dir", global.state_dir.as_deref().map(path)),
            ("--compile-time", compile_time.map(|time| time.to_string())),
        ];
        let options = typed.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten().collect();
        Self { program: env::program(), options }
    }

    /// The options, word by word.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        self.options.iter().cloned()
    }

    /// A command of ours in backticks: its name, options of its own, and what it is about.
    pub(crate) fn command(&self, name: &str, options: &[&str], operands: &[&str]) -> String {
        let end = operands.iter().any(|word| word.starts_with('-')).then_some("--");
        let own = options.iter().chain(&end).chain(operands).copied();
        let words = [&*self.program, name].into_iter().chain(self.options.iter().map(String::as_str)).chain(own);
        format!("`{}`", words.map(quoted).collect::<Vec<_>>().join(" "))
    }
}

/// One word of a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
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
        let again = |program: &str, options: &[&str]| Again {
            program: program.to_owned(),
            options: options.iter().copied().map(str::to_owned).collect(),
        };
        let (plain, typed) = (again("toolcell", &[]), again("a dir/toolcell", &["--config", "my k.toml"]));
        for (again, options, operands, expected) in [
            (&plain, &[][..], &[][..], "`toolcell approve`"),
            (&plain, &[], &["notes"], "`toolcell approve notes`"),
            (&plain, &["--yes"], &["-x"], "`toolcell approve --yes -- -x`"),
            (&typed, &["--yes"], &["notes"], "`'a dir/toolcell' approve --config 'my k.toml' --yes notes`"),
        ] {
            assert_eq!(again.command("approve", options, operands), expected);
        }
    }
}
