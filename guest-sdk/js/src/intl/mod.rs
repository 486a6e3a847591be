//! Native functions for `Intl`: time zones and collation. Only with the feature `intl`.

mod collation;
mod zones;

use rquickjs::{Ctx, Function, Object, Result};

/// Adds the functions to the object of native functions.
pub(crate) fn add<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    host.set("zone", Function::new(ctx.clone(), zones::canonical)?)?;
    host.set("zones", Function::new(ctx.clone(), zones::all)?)?;
    host.set("zoneAt", Function::new(ctx.clone(), zones::at)?)?;
    host.set("zoneName", Function::new(ctx.clone(), zones::name)?)?;
    host.set("collate", Function::new(ctx.clone(), collation::compare)?)
}
