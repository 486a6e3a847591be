//! The WASI interfaces that language runtimes import for their own start, without any power.
//!
//! Linked one by one: what is not named here (sockets above all) does not exist for a guest.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{HostMonotonicClock, HostWallClock, WasiClocks, WasiClocksView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiView};

use super::lines::Lines;
use crate::engine::cell::Cell;
use crate::event::LogSource;

/// Resolution of both clocks: enough for a tool, too coarse to time a cache line.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(1);
/// Bytes of randomness in one call; the stock limit is 64 MiB.
const RANDOM_BYTES: u64 = 64 << 10;

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// Links them.
pub(super) fn link(linker: &mut Linker<Cell>) -> wasmtime::Result<()> {
    io::error::add_to_linker::<Cell, HasTable>(linker, |cell| cell.ctx().table)?;
    io::poll::add_to_linker::<Cell, HasTable>(linker, |cell| cell.ctx().table)?;
    io::streams::add_to_linker::<Cell, HasTable>(linker, |cell| cell.ctx().table)?;
    cli::environment::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::exit::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::stdin::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::stdout::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::stderr::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_input::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_output::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_stdin::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_stdout::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    cli::terminal_stderr::add_to_linker::<Cell, WasiCli>(linker, Cell::cli)?;
    clocks::monotonic_clock::add_to_linker::<Cell, WasiClocks>(linker, Cell::clocks)?;
    clocks::wall_clock::add_to_linker::<Cell, WasiClocks>(linker, Cell::clocks)?;
    filesystem::preopens::add_to_linker::<Cell, WasiFilesystem>(linker, Cell::filesystem)?;
    filesystem::types::add_to_linker::<Cell, WasiFilesystem>(linker, Cell::filesystem)?;
    random::random::add_to_linker::<Cell, WasiRandom>(linker, |cell| cell.ctx().ctx.random())?;
    random::insecure::add_to_linker::<Cell, WasiRandom>(linker, |cell| cell.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<Cell, WasiRandom>(linker, |cell| cell.ctx().ctx.random())
}

/// A context that grants nothing: closed input, captured output, no environment, arguments, directory or network.
pub(in crate::engine) fn context(lines: &Lines) -> WasiCtx {
    WasiCtxBuilder::new()
        .stdout(lines.stream(LogSource::Stdout))
        .stderr(lines.stream(LogSource::Stderr))
        .max_random_size(RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .socket_addr_check(|_, _| Box::pin(async { false }))
        .allow_blocking_current_thread(false)
        .monotonic_clock(CoarseMonotonic(Instant::now()))
        .wall_clock(CoarseWall)
        .build()
}

fn coarse(duration: Duration) -> Duration {
    let step = CLOCK_RESOLUTION.as_nanos();
    Duration::from_nanos(u64::try_from(duration.as_nanos() / step * step).unwrap_or(u64::MAX))
}

/// Time since the cell first asked.
struct CoarseMonotonic(Instant);

impl HostMonotonicClock for CoarseMonotonic {
    fn resolution(&self) -> u64 {
        u64::try_from(CLOCK_RESOLUTION.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> u64 {
        u64::try_from(coarse(self.0.elapsed()).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The host's date. A host clock before 1970 reads as 1970, where the stock clock panics.
struct CoarseWall;

impl HostWallClock for CoarseWall {
    fn resolution(&self) -> Duration {
        CLOCK_RESOLUTION
    }

    fn now(&self) -> Duration {
        coarse(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_tell_whole_milliseconds() {
        assert_eq!(coarse(Duration::from_nanos(2_999_999)), Duration::from_millis(2));
        assert_eq!(CoarseWall.now().subsec_nanos() % 1_000_000, 0);
        assert_eq!(CoarseMonotonic(Instant::now()).now() % 1_000_000, 0);
    }
}
