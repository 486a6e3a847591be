//! The trait of a scenario, which has cases by number, and the constructors of all scenarios.

mod bombs;
pub(crate) mod child;
mod generated;
mod guests;
pub(crate) mod mixed;
mod mutants;
mod network;
pub mod options;
mod paths;
mod schemas;
mod secrets;
mod sections;
mod server;
pub(crate) mod slots;

use crate::fixture::Fixture;
use crate::tally::Tally;
use options::Name;

/// A scenario: one kind of attack.
pub(crate) trait Scenario {
    /// Returns the number of cases. `None`: without end.
    fn cases(&self) -> Option<u64> {
        None
    }

    /// Runs the attempts of one case.
    fn attempt(&mut self, case: u64, tally: &mut Tally);

    /// Runs checks after the last case.
    fn close(&mut self, _: &mut Tally) {}
}

/// Sets a scenario up.
pub(crate) fn set_up(name: Name, stage: &Fixture) -> Box<dyn Scenario> {
    match name {
        Name::Guests => Box::new(guests::Guests::new(stage)),
        Name::Mutants => Box::new(mutants::Mutants::new(stage)),
        Name::Smith => Box::new(generated::GeneratedComponents::new(stage)),
        Name::Network => Box::new(network::Network::new(stage)),
        Name::Paths => Box::new(paths::Paths::new(stage)),
        Name::Secrets => Box::new(secrets::Secrets::new(stage)),
        Name::Bombs => Box::new(bombs::Bombs::new(stage)),
        Name::Schemas => Box::new(schemas::Schemas::new(stage)),
        Name::Slots => Box::new(slots::Slots::new(stage)),
        Name::Server => Box::new(server::Server::new(stage)),
        Name::Mixed => Box::new(mixed::Mixed::new(stage)),
    }
}
