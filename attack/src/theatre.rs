//! What every theatre is: cases by number.

use crate::options::Name;
use crate::stage::Stage;
use crate::tally::Tally;
use crate::{
    bombs, guests, mixed, mutants, network, paths, schemas, secrets, server, slots, smith,
};

/// One kind of attack.
pub(crate) trait Theatre {
    /// How many cases there are. Absent: they have no end.
    fn cases(&self) -> Option<u64> {
        None
    }

    /// Tries the attempts of one case.
    fn attempt(&mut self, case: u64, tally: &mut Tally);

    /// What is looked at when all is over.
    fn close(&mut self, _: &mut Tally) {}
}

/// Sets a theatre up.
pub(crate) fn theatre(name: Name, stage: &Stage) -> Box<dyn Theatre> {
    match name {
        Name::Guests => Box::new(guests::Guests::new(stage)),
        Name::Mutants => Box::new(mutants::Mutants::new(stage)),
        Name::Smith => Box::new(smith::Smith::new(stage)),
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
