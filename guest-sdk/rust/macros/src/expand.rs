//! Expands a function into the function and the glue that makes it a tool.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, ItemFn, Type, Visibility};

use crate::errors::Errors;
use crate::needs::Need;
use crate::options::{Options, Output};
use crate::parameters::{self, Arguments, Context};
use crate::signature::{self, Returns};
use crate::text;

/// Expands `#[tool(options)] item`.
pub(crate) fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        errors.at(
            first(&item),
            "`#[tool]` goes above a function with a body: `#[tool] fn name(…) -> … { … }`",
        );
        let errors = errors.into_tokens();
        return quote!(#item #errors);
    };
    let options = Options::read(options, &mut errors);
    signature::check(&function, &mut errors);
    let (arguments, context) = parameters::take(&mut function, &mut errors);
    let name = name(&options, &function, &mut errors);
    let description = description(&options, &function, &mut errors);
    let parts = Parts {
        options: &options,
        function: &function,
        arguments: &arguments,
        context,
        name: &name,
    };
    let definition = parts.definition(&description, &mut errors);
    if errors.is_empty() { parts.all(&definition) } else { parts.refused(errors) }
}

/// Returns the first token, if there is one.
fn first(tokens: &TokenStream) -> TokenStream {
    tokens.clone().into_iter().next().into_token_stream()
}

fn name(options: &Options, function: &ItemFn, errors: &mut Errors) -> String {
    if let Some(name) = &options.name {
        return name.value();
    }
    let name = function.sig.ident.unraw().to_string();
    if let Err(message) = text::check_name(&name) {
        errors.at(&function.sig.ident, format!("{message}; or write `#[tool(name = \"…\")]`"));
    }
    name
}

fn description(options: &Options, function: &ItemFn, errors: &mut Errors) -> String {
    let description = match &options.description {
        Some(description) => description.value().trim().to_owned(),
        None => text::doc(&function.attrs),
    };
    if description.is_empty() {
        errors.at(
            &function.sig.ident,
            "the tool has no description: write what it does, for the model, in a `///` comment above, or as \
             `#[tool(description = \"…\")]`",
        );
    }
    description
}

struct Parts<'a> {
    options: &'a Options,
    function: &'a ItemFn,
    arguments: &'a Arguments,
    context: Context,
    name: &'a str,
}

/// An identifier of the glue that cannot collide with names of the author.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

impl Parts<'_> {
    /// The type that `tools!` finds under the function's name. It is visible in the whole crate, so
    /// that a private function can be a tool: `tools!` exports it from the component, and no other
    /// code uses it.
    fn marker(&self) -> TokenStream {
        let ident = &self.function.sig.ident;
        let vis = match &self.function.vis {
            vis @ Visibility::Public(_) => vis.to_token_stream(),
            Visibility::Restricted(_) | Visibility::Inherited => quote!(pub(crate)),
        };
        quote! {
            #[doc(hidden)]
            #[allow(non_camel_case_types, unreachable_pub, reason = "named and seen as the function, for `tools!`")]
            #vis enum #ident {}
        }
    }

    /// The expansion after an error: it keeps the rest of the author's code compiling.
    fn refused(&self, errors: Errors) -> TokenStream {
        let (function, errors) = (self.function, errors.into_tokens());
        if function.sig.receiver().is_some() {
            return quote!(#function #errors);
        }
        // A variadic function is left out: the compiler's own errors on it would only distract.
        let kept = function.sig.variadic.is_none().then_some(function);
        let (marker, ident, name) = (self.marker(), &function.sig.ident, self.name);
        quote! {
            #kept
            #marker
            impl ::toolcell_guest::__private::Tool for #ident {
                const ENTRY: ::toolcell_guest::__private::Entry = ::toolcell_guest::__private::Entry::refused(#name);
            }
            #errors
        }
    }

    fn all(&self, definition: &TokenStream) -> TokenStream {
        let (function, marker, ident, name) =
            (self.function, self.marker(), &self.function.sig.ident, self.name);
        let (record, arguments) = self.record();
        let (validate, visible, execute) =
            (self.validate(&arguments), self.visible(), self.execute());
        quote! {
            #function
            #marker
            const _: () = {
                #record
                struct __Handler;
                #[automatically_derived]
                impl ::toolcell_guest::__private::Handler for __Handler {
                    type Arguments = #arguments;
                    const NAME: &'static str = #name;
                    fn definition() -> ::toolcell_guest::__private::Definition {
                        #definition
                    }
                    #validate
                    #visible
                    #execute
                }
                #[automatically_derived]
                impl ::toolcell_guest::__private::Tool for #ident {
                    const ENTRY: ::toolcell_guest::__private::Entry =
                        ::toolcell_guest::__private::Entry::of::<__Handler, #arguments>();
                }
            };
        }
    }

    /// Generates the struct of a function that takes each argument by itself. Returns it with the
    /// type of the arguments.
    fn record(&self) -> (TokenStream, TokenStream) {
        let each = match self.arguments {
            Arguments::Whole(ty) => return (TokenStream::new(), ty.to_token_stream()),
            Arguments::Each(each) => each,
        };
        let fields = each.iter().map(|argument| {
            let (name, ty, attributes) = (&argument.name, &argument.ty, &argument.attributes);
            let rename = argument.rename.as_ref().map(|rename| quote!(#[serde(rename = #rename)]));
            quote!(#(#attributes)* #rename #name: #ty)
        });
        // These come before the derives, so that this error is reported before theirs.
        let checks = each.iter().filter(|argument| argument.is_plain()).map(|argument| {
            let ty = &argument.ty;
            quote_spanned!(ty.span()=> const _: () = ::toolcell_guest::__private::argument::<#ty>();)
        });
        // A flattened parameter takes the arguments that no other parameter has, so unknown fields
        // are allowed.
        let is_flat = |attribute: &Attribute| {
            attribute.path().is_ident("serde")
                && attribute.to_token_stream().to_string().contains("flatten")
        };
        let closed = !each.iter().flat_map(|argument| &argument.attributes).any(is_flat);
        let closed = closed.then(|| quote!(#[serde(deny_unknown_fields)]));
        let record = quote! {
            #(#checks)*
            #[derive(
                ::toolcell_guest::__private::serde::Deserialize,
                ::toolcell_guest::__private::schemars::JsonSchema,
            )]
            #[serde(crate = "::toolcell_guest::__private::serde")]
            #[schemars(crate = "::toolcell_guest::__private::schemars")]
            #closed
            struct __Arguments { #(#fields),* }
        };
        (record, quote!(__Arguments))
    }

    fn definition(&self, description: &str, errors: &mut Errors) -> TokenStream {
        let Options { read_only, idempotent, destructive, open_world, .. } = self.options;
        // An empty list of needs also stands for a tool that does not declare them; the extension
        // tells the two apart.
        let nothing = self.options.needs.as_ref().is_some_and(Vec::is_empty);
        let nothing = nothing.then(|| quote!(("needs", ::toolcell_guest::__private::json!([]))));
        let needs = self.options.needs.iter().flatten().map(|need| {
            let Need { kind, pattern, reason } = need;
            quote!(::toolcell_guest::__private::Need { kind: #kind, pattern: #pattern, reason: #reason })
        });
        let attributes = self.options.attributes.iter().map(|object| {
            quote!(attributes: ::toolcell_guest::__private::pairs(::toolcell_guest::__private::json!(#object)),)
        });
        let title = self
            .options
            .title
            .iter()
            .map(|title| quote!(("title", ::toolcell_guest::__private::json!(#title))));
        let extensions = title.chain(nothing);
        let limit = self
            .options
            .max_execution_ms
            .iter()
            .map(|ms| quote!(max_execution_ms: ::core::option::Option::Some(#ms),));
        let output = self.output_type(errors).map(|ty| {
            let schema = quote_spanned!(ty.span()=> ::toolcell_guest::__private::output::<#ty>());
            quote!(output: #schema,)
        });
        let (validates, hides) = (self.options.validate.is_some(), self.options.visible.is_some());
        quote! {
            ::toolcell_guest::__private::Definition {
                description: #description,
                hints: ::toolcell_guest::__private::Hints {
                    read_only: #read_only,
                    idempotent: #idempotent,
                    destructive: #destructive,
                    open_world: #open_world,
                },
                validates: #validates,
                hides: #hides,
                needs: ::std::vec![#(#needs),*],
                extensions: ::std::vec![#(#extensions),*],
                #(#attributes)* #(#limit)* #output
                ..::core::default::Default::default()
            }
        }
    }

    /// Returns the type whose schema the option `output` asks for.
    fn output_type(&self, errors: &mut Errors) -> Option<Box<Type>> {
        let word = match self.options.output.as_ref()? {
            Output::Given(ty) => return Some(ty.clone()),
            Output::Returned(word) => word,
        };
        let value = match signature::returns(&self.function.sig.output) {
            Returns::Nothing => None,
            Returns::Result { value, .. } => value,
            Returns::Value(ty) => Some(ty),
        };
        let shape = |ty: &Type| {
            let Type::Path(path) = ty else { return false };
            let last = path.path.segments.last();
            last.is_some_and(|last| {
                ["Outcome", "Output", "Question", "Halt"].iter().any(|name| last.ident == name)
            })
        };
        if value.as_deref().is_none_or(shape) {
            errors.at(
                word,
                "the return type does not say the type of the value: write `output = Type`",
            );
            return None;
        }
        value
    }

    fn validate(&self, whole: &TokenStream) -> TokenStream {
        let Some(check) = &self.options.validate else { return TokenStream::new() };
        let (arguments, function) = (local("arguments"), local("check"));
        let (types, values): (Vec<_>, Vec<_>) = match self.arguments {
            Arguments::Whole(_) => (vec![whole.clone()], vec![quote!(#arguments)]),
            Arguments::Each(each) => each
                .iter()
                .map(|argument| (argument.ty.to_token_stream(), &argument.name))
                .map(|(ty, name)| (ty, quote!(&#arguments.#name)))
                .unzip(),
        };
        let bound = quote_spanned! {check.span()=>
            let #function: fn(#(&#types),*) -> ::std::vec::Vec<::std::string::String> = #check;
        };
        quote! {
            fn validate(#arguments: &Self::Arguments) -> ::std::vec::Vec<::std::string::String> {
                #bound
                #function(#(#values),*)
            }
        }
    }

    fn visible(&self) -> TokenStream {
        let Some(rule) = &self.options.visible else { return TokenStream::new() };
        let (context, function) = (local("context"), local("rule"));
        let bound = quote_spanned! {rule.span()=>
            let #function: fn(&::toolcell_guest::Context) -> bool = #rule;
        };
        quote! {
            fn visible(#context: &::toolcell_guest::Context) -> bool {
                #bound
                #function(#context)
            }
        }
    }

    fn execute(&self) -> TokenStream {
        let (arguments, context) = (local("arguments"), local("context"));
        let ident = &self.function.sig.ident;
        let mut values: Vec<TokenStream> = match self.arguments {
            Arguments::Whole(_) => vec![quote!(#arguments)],
            Arguments::Each(each) => each
                .iter()
                .map(|argument| &argument.name)
                .map(|name| quote!(#arguments.#name))
                .collect(),
        };
        match self.context {
            Context::No => {}
            Context::Owned => values.push(quote!(#context)),
            Context::Borrowed => values.push(quote!(&#context)),
        }
        let call = quote!(#ident(#(#values),*));
        let outcome = match signature::returns(&self.function.sig.output) {
            Returns::Nothing => quote!({ #call; ::toolcell_guest::Outcome::ok(()) }),
            Returns::Value(ty) => {
                let (value, outcome) = converted(ty.span(), "IntoOutcome", "into_outcome");
                quote!({ let #value = #call; #outcome })
            }
            Returns::Result { whole, value, error } => {
                let at = |ty: Option<Box<Type>>| ty.map_or_else(|| whole.span(), |ty| ty.span());
                let (value, outcome) = converted(at(value), "IntoOutcome", "into_outcome");
                let (error, failure) = converted(at(error), "IntoFailure", "into_failure");
                quote! {
                    match #call {
                        ::core::result::Result::Ok(#value) => #outcome,
                        ::core::result::Result::Err(#error) => ::toolcell_guest::Outcome::Error(#failure),
                    }
                }
            }
        };
        quote! {
            fn execute(
                #arguments: Self::Arguments,
                #context: ::toolcell_guest::Context,
            ) -> ::toolcell_guest::Outcome {
                let _ = (&#arguments, &#context);
                #outcome
            }
        }
    }
}

/// Returns a name for a returned value and the call that converts it, with the span at which the
/// compiler should report an error: the return type.
fn converted(at: Span, conversion: &str, method: &str) -> (Ident, TokenStream) {
    let (conversion, method) = (Ident::new(conversion, at), Ident::new(method, at));
    let returned = Ident::new("__returned", at);
    let converted =
        quote_spanned!(at=> ::toolcell_guest::__private::#conversion::#method(#returned));
    (returned, converted)
}
