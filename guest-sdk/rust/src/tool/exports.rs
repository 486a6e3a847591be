//! The macro `tools!`: generates the exports of a component.

/// Makes these functions the tools of the component. Write it once, at the top level of a module of
/// the component.
///
/// Each name is the name of a function with `#[tool]`, or its path if the function is in another
/// module: `tools![add, text::reverse]`. The function itself may be private.
///
/// ```
/// use toolcell_guest::{tool, tools};
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: f64, b: f64) -> f64 {
///     a + b
/// }
///
/// tools![add];
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! tools {
    ($($($tool:ident)::+),+ $(,)?) => {
        $crate::tools!(@export [$($crate::__entry!([] $($tool)+)),+]);
    };
    // A path of another form, such as `$crate::add` in a macro of the author.
    ($($tool:ty),+ $(,)?) => {
        $crate::tools!(@export [$(<$tool as $crate::__private::Tool>::ENTRY),+]);
    };
    (@export [$($entry:expr),+]) => {
        const _: () = {
            const TOOLS: &[$crate::__private::Entry] = &[$($entry),+];
            ::core::assert!(
                $crate::__private::unique(TOOLS),
                "two tools of this component have the same name: rename one with `#[tool(name = \"…\")]`"
            );

            #[cfg(target_arch = "wasm32")]
            const _: () = {
                use $crate::__private::{abi, wire};

                struct Component;

                impl abi::Guest for Component {
                    fn describe() -> ::std::vec::Vec<abi::Definition> {
                        wire::describe(TOOLS)
                    }
                    fn validate(call: abi::ToolCall) -> ::std::vec::Vec<::std::string::String> {
                        wire::validate(TOOLS, &call)
                    }
                    fn visible(name: ::std::string::String, context: abi::Context) -> bool {
                        wire::visible(TOOLS, &name, context)
                    }
                    fn execute(call: abi::ToolCall, context: abi::Context) -> abi::Outcome {
                        wire::execute(TOOLS, call, context)
                    }
                }

                $crate::bindings::export!(Component with_types_in $crate::bindings);
            };
        };
    };
    () => {
        ::core::compile_error!("a component needs at least one tool: `tools![name_of_a_function];`");
    };
}

/// The entry of the tool at a path: the scope in brackets, then its name.
///
/// A function without `#[tool]` has no type of its name, and the compiler would report "expected
/// type, found function". Therefore an outer block declares a type of this name that is not a tool;
/// a tool's type in the scope shadows it.
#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    ([] $tool:ident) => { $crate::__entry!([self] $tool) };
    ([$($scope:ident)+] $tool:ident) => {{
        #[allow(non_camel_case_types, dead_code, reason = "has the function's name, and is used only if that is no tool")]
        enum $tool {}
        {
            #[allow(unused_imports, reason = "there may be no tool to import")]
            use $($scope::)+*;
            <$tool as $crate::__private::Tool>::ENTRY
        }
    }};
    ([$($scope:ident)*] $next:ident $($rest:ident)+) => { $crate::__entry!([$($scope)* $next] $($rest)+) };
}
