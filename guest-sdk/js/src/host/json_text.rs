//! JSON of results: the text of a value, and the depth of a text.

#![allow(unsafe_code, reason = "the size of the stack, which rquickjs sets outside of a call only")]

use rquickjs::{Ctx, Result, String as JsString, Value, qjs};

use crate::state::STACK;

/// Bytes of the C stack for [`plain`]. Its recursion fills the stack of a cell more than three
/// times as fast as the C stack.
const PLAIN_STACK: usize = STACK / 4;

/// Returns the JSON of a value, or `None` if it has none, or is so deep that the stack is full.
pub(crate) fn plain<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<Option<JsString<'js>>> {
    // SAFETY: the context is alive, and its runtime with it.
    let resize = |bytes: usize| unsafe {
        qjs::JS_SetMaxStackSize(qjs::JS_GetRuntime(ctx.as_raw().as_ptr()), bytes as _);
    };
    resize(PLAIN_STACK);
    let text = ctx.json_stringify(value);
    resize(STACK);
    Ok(text.unwrap_or_else(|_| {
        ctx.catch();
        None
    }))
}

/// Returns true if JSON nests deeper than this many levels.
pub(crate) fn is_deep(json: &str, most: usize) -> bool {
    let (mut depth, mut bytes) = (0_usize, json.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                while let Some(b'\\') = bytes.find(|byte| matches!(byte, b'"' | b'\\')) {
                    bytes.next();
                }
            }
            b'[' | b'{' if depth == most => return true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    false
}
