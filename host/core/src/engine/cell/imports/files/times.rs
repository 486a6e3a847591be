//! Converts the times of files that a guest sets, and those that it reads.
//!
//! `types` uses [`system_time`] for `set-times-at` and [`rounded_times`] for `stat`. A time that
//! this machine cannot represent is the error `Overflow`. A time that a guest (the WebAssembly code
//! of a tool) reads is not finer than its clocks (one millisecond), and is shifted with them, so
//! that it reveals no time that the clocks hide. The last 64 times that the guest has set itself
//! are read back exactly.
//! Source: docs/threat-model.md, rows 32 and 51.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use toolcell_contract::controls::enforced;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorStat, ErrorCode, NewTimestamp};
use wasmtime_wasi::p2::{FsResult, bindings::clocks::wall_clock::Datetime};

use crate::engine::cell::imports::inert::Clock;

/// Converts a time that a tool sets.
///
/// # Errors
/// `Overflow` if this machine cannot represent it.
pub(super) fn system_time(time: NewTimestamp) -> FsResult<Option<SystemTime>> {
    match time {
        NewTimestamp::NoChange => Ok(None),
        NewTimestamp::Now => Ok(Some(SystemTime::now())),
        NewTimestamp::Timestamp(at) => {
            let time = since_1970(at).and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
            Ok(Some(time.ok_or(ErrorCode::Overflow)?))
        }
    }
}

/// Times that a guest has set and reads back exactly: more than a program sets before it reads
/// them.
pub(super) const REMEMBERED: usize = 64;

/// Returns the time since 1970 that a tool sets, if it names one.
pub(super) fn exact(time: NewTimestamp) -> Option<Duration> {
    match time {
        NewTimestamp::NoChange | NewTimestamp::Now => None,
        NewTimestamp::Timestamp(at) => since_1970(at),
    }
}

/// Returns the attributes of a file with times at the precision of the tool's clock. A time that
/// the tool has set is exact.
pub(super) fn rounded_times(
    mut file: DescriptorStat,
    clock: Clock,
    set: &VecDeque<Duration>,
) -> DescriptorStat {
    let times = [
        &mut file.data_access_timestamp,
        &mut file.data_modification_timestamp,
        &mut file.status_change_timestamp,
    ];
    for time in times.into_iter().filter(|_| enforced!(FileTimes)) {
        let shown = time
            .and_then(since_1970)
            .map(|since| if set.contains(&since) { since } else { clock.to_cell_time(since) });
        *time = shown
            .map(|shown| Datetime { seconds: shown.as_secs(), nanoseconds: shown.subsec_nanos() });
    }
    file
}

/// Returns `None` for more than a [`Duration`] holds.
fn since_1970(time: Datetime) -> Option<Duration> {
    Duration::from_secs(time.seconds).checked_add(Duration::from_nanos(time.nanoseconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrepresentable_file_time_overflows() {
        let at = |seconds, nanoseconds| {
            system_time(NewTimestamp::Timestamp(Datetime { seconds, nanoseconds }))
        };
        assert_eq!(at(0, 0).unwrap(), Some(SystemTime::UNIX_EPOCH));
        let last = i64::MAX.unsigned_abs();
        assert!(at(last, 999_999_999).unwrap().is_some());
        // Excess nanoseconds carry over into seconds, and one second beyond the range overflows.
        assert_eq!(at(0, 1_500_000_000).unwrap(), at(1, 500_000_000).unwrap());
        for (seconds, nanoseconds) in
            [(last, 1_000_000_000), (last + 1, 0), (u64::MAX, 999_999_999), (u64::MAX, u32::MAX)]
        {
            let error = at(seconds, nanoseconds).unwrap_err().downcast().unwrap();
            assert_eq!(error, ErrorCode::Overflow, "{seconds} {nanoseconds}");
        }
    }
}
