//! `tools!`: the exports of a component.

/// Makes these functions the tools of the component. Write it once in a component.
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
    ($($tool:ty),+ $(,)?) => {
        const _: () = {
            const TOOLS: &[$crate::__private::Entry] = &[$(<$tool as $crate::__private::Tool>::ENTRY),+];
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
