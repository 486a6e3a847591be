//! Tests of cells and worker processes: their bounds, their isolation, and how calls end.

mod alone;
mod ceiling;
mod ending;
mod hostile;
mod isolation;
mod load;
mod mischief;
mod panics;
mod worker_process;
mod workers;
