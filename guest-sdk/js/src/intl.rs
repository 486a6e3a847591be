//! Native functions of `Intl`, in the runtime that has it: time zones and the order of texts.

mod collation;
mod zones;

use rquickjs::{Ctx, Function, Object, Result};

/// Adds them to the object of native functions.
pub(crate) fn add<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    host.set("zone", Function::new(ctx.clone(), zones::canonical)?)?;
    host.set("zones", Function::new(ctx.clone(), zones::all)?)?;
    host.set("zoneAt", Function::new(ctx.clone(), zones::at)?)?;
    host.set("zoneName", Function::new(ctx.clone(), zones::name)?)?;
    host.set("collate", Function::new(ctx.clone(), collation::compare)?)
}
