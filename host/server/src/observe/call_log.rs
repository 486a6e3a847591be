//! Logs calls and denials in the diagnostic log, for the operator.
//!
//! Each tenant's executor passes the events of its calls to a [`CallLog`]. It writes a line at the
//! level `info` for each call that ended, and one at `warn` for each new denial, which is a request
//! of a tool that its rights do not allow. A denial is logged once, and at most 256 are logged for
//! a tenant until the tools are reloaded, because a tool can make requests without end. All denials
//! are counted in `observe/metrics.rs`.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use parking_lot::Mutex;
use toolcell::Event;

use crate::tenants::account::ending;

/// Denials that are logged for a tenant, until the tools are reloaded.
const MAX_DENIALS: usize = 256;
/// Characters of a tool's name in a line. Bounded because a client can invent names.
const NAME_CHARS: usize = 64;
/// Characters of a call's id in a line: those of a request's id. Bounded for the same reason.
const ID_CHARS: usize = 128;

/// The log of one tenant's calls.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    tenant: Option<String>,
    /// Digests of the denials that were logged.
    denials: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

impl CallLog {
    pub(crate) fn of_tenant(tenant: Option<&str>) -> Self {
        Self { tenant: tenant.map(str::to_owned), ..Self::default() }
    }

    /// Logs a completed call or a new denial.
    pub(crate) fn log(&self, event: &Event) {
        let tenant = self.tenant.as_deref();
        match event {
            Event::Completed { id, name, result, usage, .. } => tracing::info!(
                tenant,
                tool = shortened(name, NAME_CHARS),
                call = shortened(id, ID_CHARS),
                outcome = ending(result),
                wall = ?usage.wall,
                fuel = usage.fuel,
                "a call ended"
            ),
            Event::Denied { id, denial } if self.is_new(&denial.request) => {
                tracing::warn!(
                    tenant,
                    call = shortened(id, ID_CHARS),
                    denial = denial.to_string(),
                    "a request of a tool was denied"
                );
            }
            Event::Denied { .. }
            | Event::Started { .. }
            | Event::Progress { .. }
            | Event::Log { .. } => {}
            _ => {}
        }
    }

    /// Returns true if this denial was not logged before and the limit is not reached.
    fn is_new(&self, request: &str) -> bool {
        let digest = self.hasher.hash_one(request);
        let mut denials = self.denials.lock();
        let is_new = denials.len() < MAX_DENIALS && denials.insert(digest);
        if is_new && denials.len() == MAX_DENIALS {
            tracing::warn!(
                tenant = self.tenant.as_deref(),
                "many requests of tools were denied: further denials are counted in the metrics only"
            );
        }
        is_new
    }
}

fn shortened(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invented_id_is_shortened() {
        assert_eq!(shortened(&"é".repeat(1000), ID_CHARS), "é".repeat(ID_CHARS));
        assert_eq!(shortened("call-1", ID_CHARS), "call-1");
    }

    #[test]
    fn denials_are_logged_once_and_bounded() {
        let log = CallLog::of_tenant(Some("acme"));
        assert!(log.is_new("read /a") && !log.is_new("read /a"));
        let logged = (0..10_000).filter(|path| log.is_new(&format!("read /{path}"))).count();
        assert_eq!(logged, MAX_DENIALS - 1);
    }
}
