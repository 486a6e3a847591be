//! Makes tools of the functions that a component exports, and calls them.
//!
//! When a component of the kind "functions" is loaded, [`functions`] takes its type and returns a
//! [`Function`] for each exported function. Its definition has a JSON Schema of the parameters and
//! of the result. In a call, the cell (a fresh wasmtime store) runs [`call`]: it converts the
//! arguments from JSON, calls the function, and converts the result back. The error case of a
//! `result` is the tool's own error.
//! The values of the arguments of all calls together have a limit of bytes.
//! A tool is named `INTERFACE_FUNCTION`; equal names get the package and the version too. Exports
//! of `wasi:` and `toolcell:` packages are left out. If one function has a type that cannot be
//! JSON, such as a resource, or is async, the component is refused. At most 256 tools are accepted.
//! Not here: types (`shape`), their schemas (`schema`) and values (`value`).

mod schema;
mod shape;
mod value;

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use toolcell_contract::definition::{Definition, shortened};
use toolcell_contract::outcome::refusal::{Fault, FaultKind, Refusal};
use toolcell_contract::outcome::tool_error::{ReturnRule, ToolError};
use toolcell_contract::outcome::{HandlerError, Outcome};
use toolcell_contract::{call::CallResult, error::Error, json::Json};
use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, Instance, Val};
use wasmtime::{Engine, Store};

use super::component_kind::{MAX_DESCRIPTION, check_tools};
use crate::tenant::share::Share;
use crate::tenant::shared_bytes::{self, shared_bytes};
use crate::tool::handler::Invocation;
use shape::{Parts, Shape};

/// Packages whose exports a runtime calls, not a model.
const NOT_TOOLS: [&str; 2] = ["wasi:", "toolcell:"];

/// The interface (without a package) and the function that start the runtime of componentize-py
/// when a component is made. It stays an export of the component, and is not called after that.
const RUNTIME: (&str, &str) = ("exports", "init");

/// Bytes of wasmtime's values for the arguments of all running calls of the process. Each byte of
/// a `list<u8>` takes 40 of them, until the call ends.
const VALUE_BYTES: u64 = 1 << 30;

static VALUES: LazyLock<Arc<Share>> = LazyLock::new(|| shared_bytes(VALUE_BYTES));

/// An exported function.
pub(in crate::engine) struct Function {
    tool: String,
    /// The tool's full name, if that is too long for a name.
    title: Option<String>,
    /// In the notation of WIT: `docs:adder/add@0.1.0#add`.
    place: String,
    index: ComponentExportIndex,
    params: Vec<(String, Shape)>,
    result: Option<Shape>,
}

/// An exported function: in an interface, or in the world itself.
struct ExportedFunction {
    interface: Option<String>,
    name: String,
    index: ComponentExportIndex,
    ty: ComponentFunc,
}

/// The reason in the error for a component without functions that is used as
/// [`ComponentKind::Functions`](crate::component::ComponentKind::Functions).
pub(in crate::engine) const NONE: &str = "it exports no function";

/// Returns true if an export may be a function, or have functions, that become tools.
pub(in crate::engine) fn may_be_tools(export: &str) -> bool {
    !NOT_TOOLS.iter().any(|package| export.starts_with(package))
}

/// Returns the functions of a component, in the order of its exports.
///
/// # Errors
/// [`Error::is_definition`] for a function that cannot be a tool, with its name;
/// [`Error::is_component`] if there is none.
pub(in crate::engine) fn functions(
    engine: &Engine,
    component: &Component,
) -> Result<Vec<Function>, Error> {
    let found = exported_functions(engine, component);
    if found.is_empty() {
        return Err(Error::no_tools(NONE, None));
    }
    check_tools(found.len())?;
    let names = names(&found);
    found.into_iter().zip(names).map(|(found, tool)| Function::new(found, tool)).collect()
}

fn exported_functions(engine: &Engine, component: &Component) -> Vec<ExportedFunction> {
    let mut functions = Vec::new();
    for (export, item) in component.component_type().exports(engine) {
        if !may_be_tools(export) {
            continue;
        }
        let Some(index) = component.get_export_index(None, export) else { continue };
        match item.ty {
            ComponentItem::ComponentFunc(ty) => {
                let name = export.to_owned();
                functions.push(ExportedFunction { interface: None, name, index, ty });
            }
            ComponentItem::ComponentInstance(instance)
                if !is_runtime(engine, export, &instance) =>
            {
                for (name, item) in instance.exports(engine) {
                    let inner = component.get_export_index(Some(&index), name);
                    if let (ComponentItem::ComponentFunc(ty), Some(index)) = (item.ty, inner) {
                        let (interface, name) = (Some(export.to_owned()), name.to_owned());
                        functions.push(ExportedFunction { interface, name, index, ty });
                    }
                }
            }
            ComponentItem::ComponentInstance(_)
            | ComponentItem::CoreFunc(_)
            | ComponentItem::Module(_)
            | ComponentItem::Component(_)
            | ComponentItem::Type(_)
            | ComponentItem::Resource(_) => {}
        }
    }
    functions
}

/// Returns true if an exported interface is the one that starts componentize-py's runtime.
fn is_runtime(engine: &Engine, export: &str, instance: &ComponentInstance) -> bool {
    let functions = instance
        .exports(engine)
        .filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)));
    export == RUNTIME.0 && functions.map(|(name, _)| name).eq([RUNTIME.1])
}

/// Returns the names of tools: `INTERFACE_FUNCTION`, or `FUNCTION` for one of the world itself.
/// Functions whose names would be the same get the namespace and package too, and those of two
/// versions of a package also its version. [`Function::new`] shortens one that is too long.
fn names(found: &[ExportedFunction]) -> Vec<String> {
    let [interface, package, version]: [fn(&str) -> &str; 3] =
        [|name| path(name).rsplit('/').next().unwrap_or_default(), path, |name| name];
    let mut names: Vec<_> = found.iter().map(|found| found.tool(interface)).collect();
    for prefix in [package, version] {
        let shorter = names.clone();
        for (name, found) in names.iter_mut().zip(found) {
            if shorter.iter().filter(|other| *other == name).count() > 1 {
                *name = found.tool(prefix);
            }
        }
    }
    names
}

/// Returns an interface's name without its version: `docs:adder/add` of `docs:adder/add@0.1.0`.
fn path(interface: &str) -> &str {
    interface.split('@').next().unwrap_or_default()
}

impl ExportedFunction {
    /// Returns the name of its tool, with a part of the name of its interface.
    fn tool(&self, prefix: fn(&str) -> &str) -> String {
        let Some(interface) = &self.interface else { return self.name.clone() };
        format!("{}_{}", prefix(interface).replace([':', '/', '@', '.', '+'], "_"), self.name)
    }
}

impl Function {
    fn new(found: ExportedFunction, tool: String) -> Result<Self, Error> {
        let (tool, title) = match shortened(&tool) {
            Some(short) => (short, Some(tool)),
            None => (tool, None),
        };
        let ExportedFunction { interface, name, index, ty } = found;
        let place =
            interface.map_or_else(|| name.clone(), |interface| format!("{interface}#{name}"));
        let refused = |what: &str| {
            let problem =
                format!("the function `{place}` cannot be a tool: it takes or returns {what}");
            Error::definition(&tool, problem)
        };
        let mut parts = Parts::default();
        let params =
            ty.params().map(|(name, ty)| Ok((name.to_owned(), Shape::of(&ty, &mut parts)?)));
        let params = params.collect::<Result<Vec<_>, &'static str>>().map_err(refused)?;
        let result = ty.results().next().map(|ty| Shape::of(&ty, &mut parts));
        let result = result.transpose().map_err(refused)?;
        Ok(Self { tool, title, place, index, params, result })
    }

    /// Builds the tool's definition from the function's types.
    pub(in crate::engine) fn definition(&self) -> Result<Definition, Error> {
        let params: Vec<_> =
            self.params.iter().map(|(name, shape)| format!("{name}: {shape}")).collect();
        let result = self.result.as_ref().map(|shape| format!(" -> {shape}")).unwrap_or_default();
        let mut described =
            format!("Calls the function `{}({}){result}`.", self.place, params.join(", "));
        if described.len() > MAX_DESCRIPTION {
            // The schemas have the types too.
            described = format!("Calls the function `{}`.", self.place);
        }
        let mut definition =
            Definition::new(&*self.tool, described)?.with_parameters(schema::object(&self.params));
        if let Some(title) = &self.title {
            definition = definition.with_attribute("title", title.as_str().into());
        }
        let returned = match &self.result {
            Some(Shape::Result(ok, _)) => ok.as_deref(),
            result => result.as_ref(),
        };
        if let Some(shape) = returned {
            definition = definition.with_output(schema::of(shape));
        }
        Ok(definition)
    }

    /// Returns the values of its parameters.
    fn arguments(&self, arguments: &Value) -> Result<Vec<Val>, Box<Fault>> {
        let members = arguments
            .as_object()
            .ok_or_else(|| Box::new(Fault::of_kind("", FaultKind::of_type("object"))))?;
        self.params.iter().map(|(name, shape)| value::member(shape, members, name, "")).collect()
    }

    /// Converts the returned values to the outcome of a call. The error of a `result` is the
    /// handler's own error. Returns `None` if the values are not of the function's type.
    fn outcome(&self, returned: &[Val]) -> Option<Outcome> {
        Some(match (&self.result, returned) {
            (None, []) => Outcome::ok(Json::null()),
            (Some(Shape::Result(ok, _)), [Val::Result(Ok(value))]) => {
                Outcome::ok(value::case_to_json(ok, value)?)
            }
            (Some(Shape::Result(_, error)), [Val::Result(Err(value))]) => {
                Outcome::Error(match value::case_to_json(error, value)? {
                    Value::Null => HandlerError::new(format!("`{}` returned an error", self.place)),
                    Value::String(message) => HandlerError::new(message),
                    data @ (Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_)) => HandlerError::new(data.to_string()).with_data(data),
                })
            }
            (Some(shape), [value]) => Outcome::ok(value::to_json(shape, value)?),
            _ => return None,
        })
    }
}

/// Calls the function that the invocation names.
pub(in crate::engine) async fn call<T: Send + 'static>(
    functions: &[Function],
    store: &mut Store<T>,
    instance: &Instance,
    invocation: &Invocation,
) -> wasmtime::Result<CallResult> {
    let function = functions.iter().find(|function| function.tool == invocation.call.name);
    let found = function
        .and_then(|function| Some((function, instance.get_func(&mut *store, function.index)?)));
    let Some((function, exported)) = found else {
        return Ok(CallResult::ToolError(ToolError::NotFound));
    };
    let given = invocation.checked_arguments();
    let bytes = function.params.iter();
    let bytes = bytes.map(|(name, shape)| value::bytes_of(shape, &given[name])).sum();
    let Some(_held) = shared_bytes::take(&VALUES, &invocation.tenant, bytes) else {
        return Ok(CallResult::Refusal(Refusal::overloaded()));
    };
    let arguments = match function.arguments(given) {
        Ok(arguments) => arguments,
        Err(fault) => return Ok(CallResult::Refusal(Refusal::InvalidArguments(vec![*fault]))),
    };
    let mut returned = vec![Val::Bool(false); usize::from(function.result.is_some())];
    exported.call_async(&mut *store, &arguments, &mut returned).await?;
    Ok(match function.outcome(&returned) {
        Some(outcome) => CallResult::Outcome(outcome),
        None => {
            let detail = "the returned value is not of the function's type".to_owned();
            CallResult::ToolError(ToolError::InvalidReturn(ReturnRule::Unreadable { detail }))
        }
    })
}

#[cfg(test)]
mod tests;
