//! Tests how calls end before they answer: at their deadline, and because their caller ends them.

mod blocking;
mod stops;
mod waits;

use std::time::Duration;

/// Time after which a test counts as hung. No test waits this long.
const PATIENCE: Duration = Duration::from_secs(30);
