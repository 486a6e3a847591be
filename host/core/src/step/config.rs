//! The configuration of steps: timeout, thresholds, concurrency.
//!
//! An embedder (the program that uses this library) passes a [`StepConfig`] to the stepper. It sets
//! the time of a step's call, the iteration from which tools are told to mention how the user can
//! stop the turn, the number of errors in a row that a turn survives, and how many calls run at the
//! same time. The timeout is never below its minimum of 10 s; a shorter one is raised, with a
//! warning. [`StepConfig::from_vars`] reads a variable through the caller's function; nothing here
//! reads the environment.
//!
//! Source: docs/contract.md, section 6.

use std::time::Duration;

use toolcell_contract::error::Error;

/// The configuration of steps.
///
/// # Defaults
/// [`StepConfig::DEFAULT_TIMEOUT`], [`StepConfig::DEFAULT_SOFT_WARN_AT`],
/// [`StepConfig::DEFAULT_MAX_ERRORS`], as many calls at the same time as a run makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepConfig {
    /// Wall time of each step's call. [`Stepper::with_config`](crate::Stepper::with_config) raises
    /// a value below [`StepConfig::MIN_TIMEOUT`] to it, with a warning in the log. To tighten the
    /// limits of one turn, set those of its [`call`](crate::Turn::call).
    pub timeout: Duration,
    /// The iteration of a turn from which on tools are told to mention how the user can stop it.
    pub soft_warn_at: u32,
    /// The number of errors in a row that do not end the turn. The next error ends it.
    pub max_errors: u32,
    /// The number of tools that [`Stepper::step_all`](crate::Stepper::step_all) runs at the same
    /// time; at least one. `None`: as many as there are calls, at most two per core.
    pub max_concurrency: Option<usize>,
}

impl Default for StepConfig {
    fn default() -> Self {
        Self {
            timeout: Self::DEFAULT_TIMEOUT,
            soft_warn_at: Self::DEFAULT_SOFT_WARN_AT,
            max_errors: Self::DEFAULT_MAX_ERRORS,
            max_concurrency: None,
        }
    }
}

impl StepConfig {
    /// The timeout of a step's call: 300 s. Source: docs/contract.md, section 6.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
    /// The smallest timeout of a step: 10 s. With a shorter one, tools that use the network would
    /// fail by chance. Source: docs/contract.md, section 6.
    pub const MIN_TIMEOUT: Duration = Duration::from_secs(10);
    /// The environment variable that sets the timeout, in whole milliseconds. Source:
    /// docs/contract.md, section 6.
    pub const TIMEOUT_VARIABLE: &str = "TOOL_EXECUTION_TIMEOUT_MS";
    /// The number of iterations of a turn after which tools are told to mention how the user can
    /// stop it.
    pub const DEFAULT_SOFT_WARN_AT: u32 = 20;
    /// The number of errors in a row that do not end a turn. A model that did not react to five of
    /// them will not react to a sixth.
    pub const DEFAULT_MAX_ERRORS: u32 = 5;

    /// Returns the defaults, changed by the environment variables that `variable` looks up. A
    /// variable that is absent or blank changes nothing.
    ///
    /// # Errors
    /// [`Error::is_options`] if [`StepConfig::TIMEOUT_VARIABLE`] is not a whole number of
    /// milliseconds.
    pub fn from_vars(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let config = Self::default();
        let Some(text) = variable(Self::TIMEOUT_VARIABLE).filter(|text| !text.trim().is_empty())
        else {
            return Ok(config);
        };
        match text.trim().parse() {
            Ok(millis) => Ok(Self { timeout: Duration::from_millis(millis), ..config }.clamped()),
            Err(problem) => {
                let shown: String = text.chars().take(80).collect();
                let problem =
                    format!("is not a whole number of milliseconds: {shown:?} ({problem})");
                Err(Error::options(Self::TIMEOUT_VARIABLE, problem))
            }
        }
    }

    /// Returns the configuration with a timeout of at least [`StepConfig::MIN_TIMEOUT`] and at least
    /// one call at the same time.
    pub(super) fn clamped(self) -> Self {
        let Self { timeout, max_concurrency, .. } = self;
        if timeout < Self::MIN_TIMEOUT {
            tracing::warn!(?timeout, minimum = ?Self::MIN_TIMEOUT, "the timeout of steps (StepConfig, or TOOL_EXECUTION_TIMEOUT_MS) is too short: the minimum is used");
        }
        Self {
            timeout: timeout.max(Self::MIN_TIMEOUT),
            max_concurrency: max_concurrency.map(|calls| calls.max(1)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcell_test_guests::rows;

    use super::*;

    #[test]
    fn step_timeout_variable_has_a_minimum() {
        for (text, expected) in rows::<(Option<&str>, Option<u64>)>("step/config", "timeouts") {
            let config = StepConfig::from_vars(|name| {
                text.filter(|_| name == StepConfig::TIMEOUT_VARIABLE).map(str::to_owned)
            });
            match (config, expected) {
                (Ok(config), Some(millis)) => {
                    assert_eq!(config.timeout, Duration::from_millis(millis), "{text:?}")
                }
                (Err(error), None) => {
                    let named = error.to_string().starts_with("`TOOL_EXECUTION_TIMEOUT_MS`");
                    assert!(error.is_options() && named, "{text:?}: {error}");
                }
                (other, _) => panic!("{text:?}: {other:?}"),
            }
        }
        let none = StepConfig { timeout: Duration::ZERO, ..StepConfig::default() };
        assert_eq!(none.clamped().timeout, StepConfig::MIN_TIMEOUT);
    }
}
