//! Bounds the memory of parsed JSON trees: how many large ones exist at once, and which are kept.
//!
//! A tree takes up to a hundred times the memory of its text. `checking` takes [`room`] before it
//! parses large arguments; a call whose tree would be 1 MiB or more waits for one of two turns, and
//! is refused as overloaded if it gets none. A large answer of a tool that has a schema for it waits
//! for a turn too, and so does every answer to a question, whose schema the tool wrote.
//! The tree of arguments is kept after the check only for a handler (the code of a tool) that reads
//! it, and all kept trees share a budget of bytes. A server takes a [`JsonReservation`] for other
//! JSON in requests.
//!
//! Both bounds hold for the whole process, whatever executors it has, and are shared fairly between
//! tenants.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use toolcell_contract::call::CallResult;
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::json::{Json, Size, measure};
use toolcell_contract::outcome::refusal::Refusal;

use crate::tenant::queue::{Queue, Slot};
use crate::tenant::share::{Reservation, Share};
use crate::tenant::shared_bytes::{self, shared_bytes};
use crate::tenant::state::TenantState;
use crate::tool::handler::{Handler, Invocation};
use crate::tool::{Tool, handler_wait::forced};

/// Calls whose large arguments or answers are parsed and checked at the same time. The tree of the
/// largest takes some 35 MB.
pub(super) const CHECKS: usize = 2;
/// Bytes. A call with a tree of this size or more waits for its turn.
const CHECKED_IN_TURN: u64 = 1 << 20;
/// Bytes of all trees that are kept for handlers. Some ten of the largest trees that occur without
/// intent fit.
const KEPT_TREE_BYTES: u64 = 256 << 20;
/// Bytes. A tree of this size or more is counted.
const COUNTED: u64 = 16 << 10;

static TURNS: LazyLock<Arc<Queue>> = LazyLock::new(|| Queue::new(CHECKS));
static TREES: LazyLock<Arc<Share>> = LazyLock::new(|| shared_bytes(KEPT_TREE_BYTES));

/// Room for a JSON tree. The executor takes it for the arguments of a call; [`take`](Self::take) is
/// for any other tree, for example of the other members of a request. All count together. Take it
/// before the text is parsed, and drop it after the tree.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::{Duration, Instant};
/// use toolcell::Json;
/// use toolcell::call::JsonReservation;
///
/// let text = r#"{"name": "report"}"#;
/// let mut room = JsonReservation::take(Some("acme"), text, Instant::now() + Duration::from_secs(1)).await.ok_or("overloaded")?;
/// let tree = Json::parse(text.into())?.to_value();
/// room.end_parsing();
/// assert_eq!(tree["name"], "report");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct JsonReservation {
    /// The share of [`KEPT_TREE_BYTES`] that the tree holds as long as it is kept.
    pub(super) held: Option<Reservation>,
    /// The turn, if the tree is so large that it waited for one. It is given back when the text is
    /// parsed and checked.
    pub(super) turn: Option<Slot>,
}

impl JsonReservation {
    /// Takes room for the tree of this text, now or before the deadline. A text with a large tree
    /// waits for its turn. Returns `None` if the tenant's bytes or those of the process are used
    /// up, or if the deadline passes. A text that is nested too deep or has too many values takes
    /// nothing: the parser refuses it.
    ///
    /// # Cancel safety
    /// May be dropped: nothing is taken then.
    pub async fn take(tenant: Option<&str>, text: &str, deadline: Instant) -> Option<Self> {
        let size = measure(text, Json::MAX_DEPTH).unwrap_or_default();
        if !is_large(size) {
            return Some(Self { held: None, turn: None });
        }
        let tenant = TenantState::of(tenant);
        // The tenant always leaves turns to others, because it is not known here whether there are
        // any.
        let turn = TURNS.take(&tenant, true, Some(deadline), text.len() as u64);
        Self::reserve(size, turn, Some(&tenant)).await
    }

    /// Awaits the turn if the tree is so large, then takes its bytes if a tenant keeps it.
    async fn reserve(
        size: Size,
        turn: impl Future<Output = Option<Slot>>,
        keeper: Option<&Arc<TenantState>>,
    ) -> Option<Self> {
        let turn = if is_in_turn(size) { Some(turn.await?) } else { None };
        let held = match keeper {
            Some(tenant) => Some(shared_bytes::take(&TREES, tenant, size.tree)?),
            None => None,
        };
        Some(Self { held, turn })
    }

    /// Ends the turn, because the text is parsed. The tree's bytes stay counted.
    pub fn end_parsing(&mut self) {
        self.turn = None;
    }
}

/// Returns true if a text with a tree of this size waits for its turn.
fn is_in_turn(size: Size) -> bool {
    size.tree >= bound!(CheckTurns, CHECKED_IN_TURN)
}

/// Returns true if arguments of this size need room.
pub(super) fn is_large(size: Size) -> bool {
    size.tree >= COUNTED
}

/// Returns true if the tree of a call's arguments is kept while the tool's handler runs.
pub(super) fn is_kept_for(tool: &Tool) -> bool {
    tool.handler().is_some_and(Handler::reads_arguments) || !enforced!(DroppedTrees)
}

/// Takes room for the tree of a call's arguments, now or before its deadline.
///
/// # Errors
/// [`Refusal::Overloaded`].
pub(super) async fn room(
    tool: &Tool,
    invocation: &Invocation,
    size: Size,
) -> Result<JsonReservation, Refusal> {
    let turn = acquire_slot(invocation, invocation.text_bytes());
    let keeper = is_kept_for(tool).then_some(&invocation.tenant);
    JsonReservation::reserve(size, turn, keeper).await.ok_or_else(Refusal::overloaded)
}

/// Returns true if the tree of an answer, parsed for its schema, is so large that it waits for its
/// turn.
pub(super) fn is_checked_in_turn(tool: &Tool, result: &CallResult) -> bool {
    let (Some(_), Some(value)) = (tool.output(), result.value()) else { return false };
    // An answer that cannot be measured is refused before it is parsed.
    let size = measure(value.as_str(), Json::MAX_DEPTH).unwrap_or_default();
    is_in_turn(size)
}

/// Takes a turn for a large text, before the deadline of the call or its forced end. The text of an
/// answer counts as 0 bytes: it is in memory either way.
pub(super) async fn acquire_slot(invocation: &Invocation, text: u64) -> Option<Slot> {
    tokio::select! {
        biased;
        turn = TURNS.take(&invocation.tenant, invocation.is_shared, invocation.deadline(), text) => turn,
        () = forced(&invocation.abort, invocation.stop_grace) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn reserved_trees_of_a_tenant_leave_room_for_others() {
        let text = format!("[{}0]", "0,".repeat(50_000));
        let take = async |tenant: &str| {
            let deadline = Instant::now() + Duration::from_secs(10);
            JsonReservation::take(Some(tenant), &text, deadline).await
        };
        let mut held = Vec::new();
        while let Some(mut room) = take("greedy").await {
            room.end_parsing();
            held.push(room);
            assert!(held.len() < 1000);
        }
        assert!(!held.is_empty() && take("modest").await.is_some());
        held.clear();
        assert!(take("greedy").await.is_some());
    }
}
