//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Attacks the library: hostile and mutated components, requests and paths to where they must not
/// lead, stolen secrets, bombs for the compiler and the schema checker, a server and its tenants,
/// and a crowd of calls that end in every way. Prints a table of what was tried and what came of
/// it. Ends with 0 if every figure holds, 1 if one does not, 2 for wrong arguments.
///
/// Every attempt comes from the seed: a failure names the command that tries it again.
#[derive(Debug, Parser)]
#[command(name = "attack", bin_name = "cargo xtask attack", args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  cargo xtask attack                                    # a minute of everything
  cargo xtask attack --seconds 3600 --seed 7            # an hour, from a seed of one's own
  cargo xtask attack --whole                            # all that the threat model counts: an hour or two
  cargo xtask attack --only mixed --calls 100000        # many calls, and what they leave behind
  cargo xtask attack --seed 7 --only network --case 42  # one attempt again")]
pub struct Options {
    /// The campaign's.
    #[command(flatten)]
    pub campaign: Campaign,
    /// Parts that the campaign plays in processes of its own.
    #[command(subcommand)]
    pub part: Option<Part>,
}

/// A whole campaign.
#[derive(Debug, Clone, Args)]
pub struct Campaign {
    /// How long it lasts, over all theatres
    #[arg(long, default_value_t = 60, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// What all attempts are made from [default: by chance, and printed]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// This kind of attack alone
    #[arg(long, value_name = "THEATRE")]
    pub only: Option<Name>,
    /// This attempt alone
    #[arg(long, value_name = "N", requires_all = ["seed", "only"])]
    pub case: Option<u64>,
    /// At least so many calls of the theatres `mixed` and `slots`, however long they take
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub calls: u64,
    /// At least as many cases of each theatre as the threat model counts, however long they take
    #[arg(long)]
    pub whole: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// What a process of the campaign does.
#[derive(Debug, Subcommand)]
pub enum Part {
    /// Plays one theatre.
    #[command(hide = true)]
    Perform(ScenarioArgs),
    /// Compiles one component.
    #[command(hide = true)]
    Compile {
        /// As the engine says it.
        order: String,
    },
}

/// One theatre in a process of its own.
#[derive(Debug, Clone, Args)]
pub struct ScenarioArgs {
    /// Which.
    pub theatre: Name,
    /// What all cases are made from.
    #[arg(long)]
    pub seed: u64,
    /// How long.
    #[arg(long)]
    pub seconds: f64,
    /// The first case.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// How many cases at least.
    #[arg(long, default_value_t = 0)]
    pub least: u64,
    /// This case alone.
    #[arg(long)]
    pub case: Option<u64>,
}

/// A kind of attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// Guests that misbehave in one exact place, under chance limits
    Guests,
    /// Real components with bytes and sections changed
    Mutants,
    /// Components of the engine's own fuzzers, made in a cell
    Smith,
    /// Requests to where none may go
    Network,
    /// Paths that lead out of a directory
    Paths,
    /// A secret in disguise, by every exit
    Secrets,
    /// Components that a compiler would work on for hours
    Bombs,
    /// Schemas and arguments that a checker would work on for hours
    Schemas,
    /// Guests that look for what another one left in their cell
    Slots,
    /// Guests and clients that try to get at the channels and the tenants of a server
    Server,
    /// Calls that end in every way, 64 at once
    Mixed,
}

impl Name {
    /// Returns the name as it is typed.
    pub fn text(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
