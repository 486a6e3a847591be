//! Commands that a hint shows: they can be pasted as they stand.
//!
//! In: what was typed. Out: text for a POSIX shell.
//! Invariants: a word stays one word; what decides which configuration and whose approvals are meant is said again.

use std::path::Path;

use toolcell::DEFAULT_COMPILE_TIME;

use crate::args::Global;

/// The options that the next command needs as this one did.
#[derive(Debug, Default)]
pub(crate) struct Again(Vec<String>);

impl Again {
    /// What was typed of them.
    pub(crate) fn of(global: &Global) -> Self {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let compile_time = Some(global.compile_time).filter(|time| time.0 != DEFAULT_COMPILE_TIME);
        let typed = [
            ("--config", global.config.as_deref().map(path)),
            ("--state-dir", global.state_dir.as_deref().map(path)),
            ("--compile-time", compile_time.map(|time| time.to_string())),
        ];
        Self(typed.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten().collect())
    }

    /// The options, word by word.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        self.0.iter().cloned()
    }

    /// A command of ours in backticks: its name, options of its own, and what it is about.
    pub(crate) fn command(&self, name: &str, options: &[&str], operands: &[&str]) -> String {
        let end = operands.iter().any(|word| word.starts_with('-')).then_some("--");
        let own = options.iter().chain(&end).chain(operands).copied();
        let words = ["toolcell", name].into_iter().chain(self.0.iter().map(String::as_str)).chain(own);
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
        let typed = Again(["--config", "my k.toml"].map(str::to_owned).into());
        for (again, options, operands, expected) in [
            (&Again::default(), &[][..], &[][..], "`toolcell approve`"),
            (&Again::default(), &[], &["notes"], "`toolcell approve notes`"),
            (&Again::default(), &["--yes"], &["-x"], "`toolcell approve --yes -- -x`"),
            (&typed, &["--yes"], &["notes"], "`toolcell approve --config 'my k.toml' --yes notes`"),
        ] {
            assert_eq!(again.command("approve", options, operands), expected);
        }
    }
}
