//! Returns the memory of a burst of requests to the system, while no request runs.
//!
//! `serve` runs [`trimmed`] beside the server for its whole life. Every ten seconds it compares the
//! memory of the process with that after the last time; if it has grown by 64 MiB and no request
//! runs, it calls `malloc_trim` of glibc. The reason: this allocator keeps freed memory for later
//! allocations, for each thread in an arena of its own, so a server would keep the memory of its
//! largest burst forever.
//!
//! It belongs to the command and not to the library, because the allocator is the whole process's.
//! Other allocators return memory by themselves: with them, this does nothing.

use std::time::Duration;

use toolcell_server::Service;

/// Time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// Bytes by which the process must have grown since memory was last returned: less is not worth the
/// work.
const GROWTH: u64 = 64 << 20;

/// Returns memory to the system whenever no request runs and the process has grown. Never returns.
pub(super) async fn trimmed(service: &Service) {
    let mut left = resident();
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let (now, running) = (resident(), service.running());
        left = left.min(now);
        if is_due(running, now, left) {
            // On a thread that may block: it walks all free memory.
            let _ = tokio::task::spawn_blocking(trim).await;
            left = resident();
            tracing::debug!(before = now, after = left, "memory was given back to the system");
        }
    }
}

/// Returns true if memory should be returned. `left` is the process's memory after the last time.
fn is_due(running: usize, now: u64, left: u64) -> bool {
    running == 0 && now.saturating_sub(left) >= GROWTH
}

/// Returns the resident memory of the process in bytes; 0 if the system does not say.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

#[cfg(target_env = "gnu")]
#[expect(
    unsafe_code,
    reason = "neither std nor rustix has this function of glibc; it takes no pointer and any thread may call it"
)]
fn trim() {
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_is_trimmed_only_when_idle_and_grown() {
        for (running, now, is_expected) in
            [(0, 3 * GROWTH, true), (1, 3 * GROWTH, false), (0, 2 * GROWTH - 1, false)]
        {
            assert_eq!(is_due(running, now, GROWTH), is_expected, "{running} {now}");
        }
    }

    /// One small piece in 64 stays allocated: without a trim the process keeps the memory of all
    /// others.
    #[test]
    #[cfg(target_env = "gnu")]
    fn trim_returns_freed_memory_to_system() {
        let pieces: Vec<Vec<u8>> = (0..(4 * GROWTH) >> 12).map(|_| vec![1; 4000]).collect();
        let kept: Vec<_> = pieces.into_iter().step_by(64).collect();
        let full = resident();
        trim();
        assert!(resident() < full - 2 * GROWTH, "{} of {full} bytes", resident());
        drop(kept);
    }
}
