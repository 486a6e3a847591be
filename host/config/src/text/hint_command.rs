//! Formats the commands of hints, so that they can be pasted.
//!
//! A hint often names the next command, such as `toolcell approve`. The reader of a configuration
//! sets a [`HintCommand`] with the program as it was entered on the command line, and the options
//! that select the configuration and the approvals. `command` adds a subcommand with options and
//! operands and returns it in backticks; the selecting options are repeated. [`quoted`] quotes one
//! word for a POSIX shell, so that it stays one word whatever characters it has.

/// The start of the next command: the program, and the options that it needs too.
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
    /// Returns a command with options that all of its subcommands need.
    pub fn new(program: impl Into<String>, options: impl IntoIterator<Item = String>) -> Self {
        Self { program: program.into(), options: options.into_iter().collect(), call: Vec::new() }
    }

    /// Sets the tool and the arguments of the current call, for hints that repeat it.
    #[must_use]
    pub fn with_call(self, words: impl IntoIterator<Item = String>) -> Self {
        Self { call: words.into_iter().collect(), ..self }
    }

    /// Returns the tool and the arguments of the current call. Empty if none was set.
    pub fn call(&self) -> &[String] {
        &self.call
    }

    /// Returns the options, one word each.
    pub fn words(&self) -> impl Iterator<Item = String> {
        self.options.iter().cloned()
    }

    /// Formats a subcommand in backticks: its name, options of its own, and operands.
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

/// Quotes one word for a POSIX shell.
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
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in
            rows::<(&str, &str)>("text/hint_command", "words_are_quoted_for_a_shell")
        {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn hint_command_repeats_program_and_options() {
        type Words = Vec<&'static str>;
        type Case = (&'static str, Words, Words, Words, &'static str);
        for (program, given, options, operands, expected) in
            rows::<Case>("text/hint_command", "hint_command_repeats_program_and_options")
        {
            let again = HintCommand {
                program: program.to_owned(),
                options: given.into_iter().map(str::to_owned).collect(),
                call: Vec::new(),
            };
            assert_eq!(again.command("approve", &options, &operands), expected);
        }
    }
}
