//! Links the WASI interfaces that language runtimes need for their start, without access to the
//! host.
//!
//! [`link`] adds them one by one: clocks, random numbers, environment, command line, standard
//! streams, exit. An interface that is not named here does not exist for a guest (the WebAssembly
//! code of a tool). [`context`] builds wasmtime's WASI context for a cell (a fresh WebAssembly
//! instance for one call) at its first use: no network, closed input, output that goes to the log,
//! and only the environment variables that the rights of the call allow. A command has its own
//! arguments, input and output.
//! [`Clock`] gives a cell whole milliseconds, too coarse to time a cache line. The embedder (the
//! program that uses this library) can set its start, stop it, and seed the random numbers, so that
//! a call can be repeated.
//! Not here: files (`files`), sockets (`sockets`), polling (`waits`).

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::event::LogSource;
use toolcell_contract::grants::rights::{Decision, Request, Rights};
use toolcell_contract::grants::{Access, SCRATCH};
use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{HostMonotonicClock, HostWallClock, WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, io, random};
use wasmtime_wasi::{
    WasiCtx, WasiCtxBuilder, WasiView, p2::pipe::MemoryInputPipe, random::WasiRandom,
};

use super::seeded_random::{Purpose, SeededRandom};
use crate::engine::cell::output::{GuestStream, captured::Streams, lines::Lines};
use crate::engine::cell::{Cell, Scope, resources::Deterministic};

/// The resolution of both clocks: fine enough for a tool, too coarse to time a cache line.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(1);
/// The monotonic time at a cell's first use of WASI. Not 0, which Go takes for a fault, and so
/// large that a program can subtract a duration from it.
const MONOTONIC_START: Duration = Duration::from_hours(24);
/// The most that file times of a disk may be behind the host's clock: the slowest kernels have a
/// hundred ticks a second.
const DISK_TICK: Duration = Duration::from_millis(20);
/// The variable by which programs find a directory for temporary files.
const TMPDIR: &str = "TMPDIR";
/// Bytes of randomness in one call; the stock limit is 64 MiB.
const RANDOM_BYTES: u64 = 64 << 10;

/// Links the interfaces.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    io::error::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)?;
    io::poll::add_to_linker::<Cell, HasSelf<ResourceTable>>(linker, |cell| cell.ctx().table)?;
    io::streams::add_to_linker::<Cell, HasSelf<ResourceTable>>(linker, |cell| cell.ctx().table)?;
    cli::environment::add_to_linker::<Cell, HasSelf<Cell>>(linker, |cell| cell)?;
    cli::exit::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::stdin::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::stdout::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::stderr::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_input::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_output::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_stdin::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_stdout::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_stderr::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    clocks::wall_clock::add_to_linker::<Cell, WasiClocks>(linker, Cell::clocks)?;
    random::random::add_to_linker::<Cell, WasiRandom>(linker, |cell| cell.ctx().ctx.random())?;
    random::insecure::add_to_linker::<Cell, WasiRandom>(linker, |cell| cell.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<Cell, WasiRandom>(linker, |cell| cell.ctx().ctx.random())
}

/// As wasmtime's own implementation; in a dry run it also records the access.
impl cli::environment::Host for Cell {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        if let Some(recorder) = &self.scope.resources.recorder {
            recorder.environment();
        }
        cli::environment::Host::get_environment(&mut self.cli())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        cli::environment::Host::get_arguments(&mut self.cli())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        cli::environment::Host::initial_cwd(&mut self.cli())
    }
}

/// Builds a context without directories and network: closed input, captured output, and the
/// environment variables that the cell's rights allow. A command also has its command line, its
/// input, and an output of its own.
pub(crate) fn context(
    lines: &Lines,
    scope: &Scope,
    clock: Clock,
    streams: Option<&Streams>,
) -> WasiCtx {
    let mut builder = WasiCtxBuilder::new();
    match streams {
        Some(Streams { argv: words, stdin, stdout }) => {
            let stdout = GuestStream::Captured(stdout.clone());
            builder.args(words).stdin(MemoryInputPipe::new(stdin.clone())).stdout(stdout);
        }
        None => {
            builder.stdout(GuestStream::Logged(lines.clone(), LogSource::Stdout));
        }
    }
    builder
        .stderr(GuestStream::Logged(lines.clone(), LogSource::Stderr))
        .max_random_size(bound!(RandomBytes, RANDOM_BYTES))
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .socket_addr_check(|_, _| Box::pin(async { false }))
        .allow_blocking_current_thread(false)
        .monotonic_clock(clock)
        .wall_clock(clock);
    let Scope { invocation, resources, rights, .. } = scope;
    for (name, value) in allowed_environment(rights) {
        builder.env(name, value);
    }
    if has_scratch(rights) && !rights.granted().environment.contains_key(TMPDIR) {
        builder.env(TMPDIR, SCRATCH);
    }
    if let Some(seed) = resources.deterministic.seed {
        let chance = |purpose| SeededRandom::new(seed, &invocation.call.id, purpose);
        builder
            .secure_random(chance(Purpose::Secure))
            .insecure_random(chance(Purpose::Insecure))
            .insecure_random_seed(chance(Purpose::InsecureSeed).number());
    }
    builder.build()
}

/// Returns true if a call with these rights has a scratch directory.
fn has_scratch(rights: &Rights) -> bool {
    rights.granted().scratch.is_some()
        && rights.allows(&Request::File { access: Access::Write, path: SCRATCH.into() })
            == Decision::Allowed
}

fn allowed_environment(rights: &Rights) -> impl Iterator<Item = (&String, &String)> {
    let allows = |name: &str| {
        !enforced!(Environment)
            || rights.allows(&Request::Environment { name: name.into() }) == Decision::Allowed
    };
    rights.granted().environment.iter().filter(move |(name, _)| allows(name))
}

fn coarse(duration: Duration) -> Duration {
    let step = if enforced!(CoarseClocks) { CLOCK_RESOLUTION.subsec_nanos() } else { 1 };
    Duration::new(duration.as_secs(), duration.subsec_nanos() / step * step)
}

/// A cell's clocks: the time of its first use of WASI, and the date that the cell reads for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    began: Instant,
    /// The host's date at that time, since 1970. A date before 1970 reads as 1970, where the stock
    /// clock panics.
    date: Duration,
    /// The cell's date at that time: the host's unless the engine sets one.
    start: Duration,
    is_frozen: bool,
}

impl Clock {
    pub(crate) fn new(fixed: Deterministic) -> Self {
        let date = SystemTime::now();
        let since = |date: SystemTime| date.duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = fixed.now.unwrap_or(date);
        let (began, is_frozen) = (Instant::now(), fixed.frozen_clock);
        Self { began, date: since(date), start: since(start), is_frozen }
    }

    /// Returns the time that has passed for the cell.
    fn elapsed(&self) -> Duration {
        let is_frozen = self.is_frozen && enforced!(FrozenClock);
        if is_frozen { Duration::ZERO } else { self.began.elapsed() }
    }

    /// Converts a date of the host, for example of a file, to the cell's clock, as time since 1970.
    /// A date before the cell's start stays as it is; a later one is shifted with the cell's clock.
    pub(crate) fn to_cell_time(self, date: Duration) -> Duration {
        coarse(match date.saturating_add(DISK_TICK).checked_sub(self.date) {
            None => date,
            Some(_) if self.is_frozen => self.start,
            Some(later) => self.start.saturating_add(later).saturating_sub(DISK_TICK),
        })
    }
}

impl HostMonotonicClock for Clock {
    fn resolution(&self) -> u64 {
        u64::try_from(CLOCK_RESOLUTION.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> u64 {
        u64::try_from(coarse(MONOTONIC_START.saturating_add(self.elapsed())).as_nanos())
            .unwrap_or(u64::MAX)
    }
}

impl HostWallClock for Clock {
    fn resolution(&self) -> Duration {
        CLOCK_RESOLUTION
    }

    fn now(&self) -> Duration {
        coarse(self.start.saturating_add(self.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use wasmtime_wasi::p2::bindings::random::insecure::Host as _;
    use wasmtime_wasi::p2::bindings::random::random::Host as _;

    use super::*;

    #[test]
    fn clocks_return_whole_milliseconds() {
        assert_eq!(coarse(Duration::from_nanos(2_999_999)), Duration::from_millis(2));
        for frozen_clock in [false, true] {
            let clock = Clock::new(Deterministic { frozen_clock, ..Deterministic::default() });
            let (wall, monotonic): (&dyn HostWallClock, &dyn HostMonotonicClock) = (&clock, &clock);
            assert_eq!(wall.now().subsec_nanos() % 1_000_000, 0);
            assert_eq!(monotonic.now() % 1_000_000, 0);
            assert_eq!((wall.resolution(), monotonic.resolution()), (CLOCK_RESOLUTION, 1_000_000));
            assert!(Duration::from_nanos(monotonic.now()) >= MONOTONIC_START);
        }
        let now = Some(UNIX_EPOCH - Duration::from_secs(1));
        let before = Clock::new(Deterministic { now, frozen_clock: true, seed: None });
        assert_eq!(HostWallClock::now(&before), Duration::ZERO);
    }

    #[test]
    fn host_dates_map_to_the_cell_clock() {
        let (date, second) = (Duration::from_secs(1_000_000), Duration::from_secs(1));
        for (start, is_frozen, expected) in [
            // Dates: long before the cell's start, at its start by a clock that goes in steps, at
            // its start, and later.
            (date, false, [date - second, date - DISK_TICK, date, date + second]),
            (date, true, [date - second, date, date, date]),
            (second, false, [date - second, second - DISK_TICK, second, second + second]),
            (second, true, [date - second, second, second, second]),
        ] {
            let clock = Clock { began: Instant::now(), date, start, is_frozen };
            let told = [date - second, date - DISK_TICK, date, date + second]
                .map(|date| clock.to_cell_time(date));
            assert_eq!(told, expected, "{clock:?}");
            let fine = Duration::from_nanos(1_999_999);
            assert_eq!(clock.to_cell_time(fine), Duration::from_millis(1));
            assert!(clock.to_cell_time(Duration::MAX) <= Duration::MAX);
        }
    }

    /// Builds a context as for a call without a seed.
    fn unseeded_context() -> WasiCtx {
        let limits = toolcell_contract::limits::Limits::default();
        let invocation = crate::tool::handler::Invocation::scripted("t", limits);
        let scope = Scope {
            invocation: Arc::new(invocation),
            resources: Arc::default(),
            mounts: None,
            rights: Arc::default(),
            redactor: None,
        };
        let lines = Lines::new(Arc::clone(&scope.invocation));
        context(&lines, &scope, Clock::new(Deterministic::default()), None)
    }

    /// Fails without: the limit (the stock limit is larger).
    #[test]
    fn random_request_size_is_bounded() {
        let mut context = unseeded_context();
        let random = context.random();
        let secure = random.get_random_bytes(RANDOM_BYTES).unwrap().len();
        let insecure = random.get_insecure_random_bytes(RANDOM_BYTES).unwrap().len();
        assert_eq!([secure as u64, insecure as u64], [RANDOM_BYTES; 2]);
        assert!(random.get_random_bytes(RANDOM_BYTES + 1).is_err());
        assert!(random.get_insecure_random_bytes(RANDOM_BYTES + 1).is_err());
    }

    /// A hundred draws in each of a hundred calls with the same id. Source: docs/threat-model.md,
    /// row 53.
    #[test]
    fn random_draws_never_repeat() {
        let mut seen = HashSet::new();
        for call in 0..100 {
            let mut context = unseeded_context();
            let random = context.random();
            for draw in 0..100 {
                for bytes in [random.get_random_bytes(64), random.get_insecure_random_bytes(64)] {
                    assert!(seen.insert(bytes.unwrap()[..16].to_vec()), "call {call}, draw {draw}");
                }
            }
        }
    }
}
