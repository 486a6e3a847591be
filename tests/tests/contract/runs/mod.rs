//! Tests of runs and registries: events, the policy for failures, results and statistics.

mod events;
mod policy;
mod registry;
mod results;
