//! Gets the definitions of the tools of a linked component, and checks that they can be served.
//!
//! A load calls [`describe`] with the linked code. Functions and commands have definitions that
//! follow from their types and settings. A component of tools is called: its export `describe` runs
//! in a cell (a fresh store) without grants, within two seconds and limits of its own on fuel
//! (executed instructions) and result. The function returns the definitions, or an error: no tools,
//! more than 256, two of one name, or a description over 4 KiB.
//! It blocks its thread until the component has answered.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcell_contract::call::{CallContext, ToolCall};
use toolcell_contract::controls::{bound, enforced};
use toolcell_contract::{definition::Definition, error::Error, limits::Limits};

use crate::engine::adapt::component_kind::{MAX_DESCRIPTION, check_tools};
use crate::engine::cell::invoke::Ready;
use crate::engine::schedule::placement::{self, Scheduler};
use crate::tool::handler::Invocation;

/// Time for `describe`.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Fuel for `describe`: it generates schemas and computes nothing.
const DESCRIBE_FUEL: u64 = 100_000_000;
/// Bytes of the whole result of `describe`.
const DESCRIBE_RESULT: u64 = 4 << 20;

/// Returns the definitions, from `describe` unless they are known without it. Refuses those that
/// could not be served.
pub(super) fn describe(
    scheduler: &Scheduler,
    ready: &Arc<Ready>,
) -> Result<Vec<Definition>, Error> {
    let limits = Limits {
        timeout: DESCRIBE_TIMEOUT,
        fuel: DESCRIBE_FUEL,
        result: DESCRIBE_RESULT,
        ..Limits::default()
    };
    let invocation = || {
        let call = ToolCall::new("", "describe", "{}");
        Invocation::outside_call(call, Value::Null, CallContext::default(), limits)
    };
    let definitions = ready.exports.definitions().unwrap_or_else(|| {
        scheduler.sleeps.block_on(placement::describe(scheduler, Arc::clone(ready), invocation))
    })?;
    if definitions.is_empty() {
        return Err(Error::no_tools("its `describe` returns no tools", None));
    }
    check_tools(definitions.len())?;
    for (index, definition) in definitions.iter().enumerate() {
        let name = &definition.name;
        if enforced!(NamesTwice)
            && definitions.iter().take(index).any(|earlier| earlier.name == *name)
        {
            return Err(Error::definition(name, "the component has two tools of this name"));
        }
        if definition.description.len() > bound!(DescriptionBytes, MAX_DESCRIPTION) {
            let problem = format!("its description is over {MAX_DESCRIPTION} bytes");
            return Err(Error::definition(name, problem));
        }
    }
    Ok(definitions)
}
