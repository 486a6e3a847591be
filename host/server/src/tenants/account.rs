//! The account of one tenant: its quota's buckets, and the totals that the tenant sees.
//!
//! The admission of a request asks [`Account::admit`], which returns [`Slots`] for its calls or a
//! refusal with the time to wait. The executor's last event of each call goes to
//! [`Account::charge`]. So a call that its caller dropped is charged too. [`Account::usage`]
//! returns the totals and the rest of the quota as [`TenantUsage`]. An account lives as long as the
//! service, across versions of the served tools.
//!
//! Fuel (instruction units) that tools use outside of calls, and fuel of calls to hidden tools, is
//! charged to the quota and not shown, because it would show that such tools exist. The fuel of a
//! call that another tool made is part of the outer call's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use toolcell::clock::Clock;
use toolcell::controls::enforced;
use toolcell::outcome::Exit;
use toolcell::tenant::Quota;
use toolcell::{CallResult, Event, Refusal, ToolError};

use super::quota::{Bucket, QuotaKind};
use super::refused::RequestError;

/// The time after which a tenant at its limit of concurrent calls is told to retry.
const RETRY_SLOTS: Duration = Duration::from_millis(250);

/// The usage of a tenant since the server started.
///
/// # Shape
/// As JSON: its fields by name.
///
/// # Units
/// `fuel` in the engine's instruction units, `wall_us` in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[non_exhaustive]
pub struct TenantUsage {
    /// Calls that have ended.
    pub calls: u64,
    /// Calls by how they ended: `ok`, `error`, `ask_user`, `halt`, `refusal`, `cancelled`, or the
    /// reason of another tool error.
    pub outcomes: BTreeMap<String, u64>,
    /// Instructions that the calls executed. Checks of visibility outside of calls are not counted.
    pub fuel: u64,
    /// Wall time of the calls, in microseconds.
    pub wall_us: u64,
    /// Calls that run now.
    pub running: usize,
    /// Calls that the quota allows now. Absent without a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_remaining: Option<u64>,
    /// Fuel that the quota allows now. Absent without a quota. What tools use beside calls is
    /// charged to the quota, and not shown here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel_remaining: Option<u64>,
}

/// The account of one tenant.
#[derive(Debug)]
pub(crate) struct Account {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    totals: TenantUsage,
    calls: Option<Bucket>,
    fuel: Option<Bucket>,
    /// The fuel that is shown to the tenant. It leaves out charges that the tenant must not see.
    shown: Option<Bucket>,
}

impl Account {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Admits a request of `calls` calls that asks to run `wanted` at once. Returns the free slots,
    /// up to `wanted`, or an error if none is free.
    pub(crate) fn admit(
        self: &Arc<Self>,
        quota: &Quota,
        calls: usize,
        wanted: usize,
    ) -> Result<Slots, RequestError> {
        let mut state = self.state.lock();
        let free = state.free_slots(quota, self.clock.now(), calls, wanted)?;
        if let Some(bucket) = &mut state.calls {
            bucket.take(calls as u64);
        }
        state.totals.running += free;
        Ok(Slots { account: Arc::clone(self), count: free })
    }

    /// Returns an error if one call would not be admitted now. Charges nothing.
    pub(crate) fn check(&self, quota: &Quota) -> Result<(), RequestError> {
        self.state.lock().free_slots(quota, self.clock.now(), 1, 1).map(|_| ())
    }

    /// Returns an error while the quota has no fuel.
    pub(crate) fn check_fuel(&self, quota: &Quota) -> Result<(), RequestError> {
        let mut state = self.state.lock();
        state.fill(quota, self.clock.now());
        check_bucket(state.fuel_outside_of_calls().as_deref(), 1, QuotaKind::Fuel)
    }

    /// Charges fuel that the tenant is not shown.
    pub(crate) fn charge_unseen(&self, fuel: u64) {
        if let Some(bucket) = self.state.lock().fuel_outside_of_calls() {
            bucket.take(fuel);
        }
    }

    /// Charges a call that has ended. A call to a tool that the tenant must not see changes no
    /// shown total, like a call to an unknown tool.
    pub(crate) fn charge(&self, event: &Event) {
        let Event::Completed { result, usage, parent, .. } = event else { return };
        // The fuel of a sub-call is part of its outermost call's fuel.
        let fuel = usage.fuel.filter(|_| parent.is_none()).unwrap_or_default();
        if matches!(result, CallResult::Refusal(Refusal::NotVisible)) && enforced!(HiddenUsage) {
            self.charge_unseen(fuel);
            return;
        }
        let mut state = self.state.lock();
        let State { totals, fuel: bucket, shown, .. } = &mut *state;
        totals.calls += 1;
        *totals.outcomes.entry(ending(result).to_owned()).or_default() += 1;
        if parent.is_some() {
            return;
        }
        totals.fuel = totals.fuel.saturating_add(fuel);
        let wall = u64::try_from(usage.wall.as_micros()).unwrap_or(u64::MAX);
        totals.wall_us = totals.wall_us.saturating_add(wall);
        for bucket in [bucket, shown].into_iter().flatten() {
            bucket.take(fuel);
        }
    }

    /// Returns what the tenant has used, and what the quota leaves.
    pub(crate) fn usage(&self, quota: &Quota) -> TenantUsage {
        let mut state = self.state.lock();
        state.fill(quota, self.clock.now());
        TenantUsage {
            calls_remaining: state.calls.as_ref().map(Bucket::left),
            fuel_remaining: state.shown.as_ref().map(Bucket::left),
            ..state.totals.clone()
        }
    }
}

/// Returns an error while the bucket has fewer tokens.
fn check_bucket(bucket: Option<&Bucket>, tokens: u64, kind: QuotaKind) -> Result<(), RequestError> {
    let retry_after = bucket.map(|bucket| bucket.wait_for(tokens)).unwrap_or_default();
    if retry_after.is_zero() { Ok(()) } else { Err(RequestError::Quota { kind, retry_after }) }
}

impl State {
    /// Returns the free slots, up to `wanted`, or an error if a request of `calls` calls is not
    /// admitted now.
    fn free_slots(
        &mut self,
        quota: &Quota,
        now: Instant,
        calls: usize,
        wanted: usize,
    ) -> Result<usize, RequestError> {
        self.fill(quota, now);
        let most = quota.concurrent_calls.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        let free =
            most.map_or(wanted, |most| most.saturating_sub(self.totals.running)).min(wanted.max(1));
        if free == 0 && wanted > 0 {
            let kind = QuotaKind::Concurrent;
            return Err(RequestError::Quota { kind, retry_after: RETRY_SLOTS });
        }
        check_bucket(self.fuel.as_ref(), 1, QuotaKind::Fuel)?;
        let limit = quota.calls_per_minute.filter(|limit| *limit > 0);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        if let Some(limit) = limit.filter(|limit| calls > *limit) {
            return Err(RequestError::TooManyCalls { actual: calls, limit });
        }
        let bucket = self.calls.as_ref().filter(|_| enforced!(CallQuota));
        check_bucket(bucket, calls as u64, QuotaKind::Calls)?;
        Ok(free)
    }

    /// Returns the fuel from which the work of tools outside of calls is paid.
    fn fuel_outside_of_calls(&mut self) -> Option<&mut Bucket> {
        self.fuel.as_mut().filter(|_| enforced!(CheckFuel))
    }

    /// Creates, refills or removes the buckets, as the quota says.
    fn fill(&mut self, quota: &Quota, now: Instant) {
        let Quota { calls_per_minute, fuel_per_minute, .. } = *quota;
        for (bucket, rate) in [
            (&mut self.calls, calls_per_minute),
            (&mut self.fuel, fuel_per_minute),
            (&mut self.shown, fuel_per_minute),
        ] {
            match (bucket.as_mut(), rate) {
                (_, None) => *bucket = None,
                (None, Some(rate)) => *bucket = Some(Bucket::new(rate, now)),
                (Some(bucket), Some(rate)) => bucket.fill(rate, now),
            }
        }
    }
}

/// Slots of running calls, freed on drop.
#[derive(Debug)]
pub(crate) struct Slots {
    account: Arc<Account>,
    /// The number of calls that may run at once.
    pub(crate) count: usize,
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.account.state.lock().totals.running -= self.count;
    }
}

/// Returns the name of how a call ended.
pub(crate) fn ending(result: &CallResult) -> &'static str {
    match result {
        // Its reason is that of a tool that exits by itself.
        CallResult::ToolError(ToolError::HandlerExit(Exit::Cancelled)) => "cancelled",
        CallResult::ToolError(error) => error.reason().name(),
        CallResult::Outcome(_) | CallResult::Refusal(_) => result.name(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcell::clock::SystemClock;
    use toolcell::{Outcome, Usage};

    use super::*;

    #[test]
    fn sub_call_usage_is_charged_once() {
        let account = Account::new(Arc::new(SystemClock));
        let ended = |id: &str, fuel: u64, parent: Option<&str>| {
            let mut usage = Usage::default();
            usage.fuel = Some(fuel);
            let result = CallResult::Outcome(Outcome::ok(json!(1)));
            Event::Completed {
                id: id.into(),
                name: "tool".into(),
                result,
                usage,
                parent: parent.map(Into::into),
            }
        };
        account.charge(&ended("1/1", 40, Some("1")));
        account.charge(&ended("1", 100, None));
        let usage = account.usage(&Quota::default());
        assert_eq!((usage.calls, usage.fuel, usage.outcomes["ok"]), (2, 100, 2));
    }
}
