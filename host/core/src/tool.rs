//! A tool: a definition, its compiled schemas, and what runs for it.

use std::fmt;
use std::sync::Arc;

use crate::definition::Definition;
use crate::error::Error;
use crate::handler::Handler;
use crate::native::{Native, NativeFn};
use crate::schema::Schema;

/// A tool that can be called. Cheap to clone.
#[derive(Clone)]
pub struct Tool(Arc<Inner>);

struct Inner {
    definition: Definition,
    parameters: Option<Schema>,
    output: Option<Schema>,
    handler: Option<Box<dyn Handler>>,
}

impl Tool {
    /// A tool without a handler (manual mode): the embedder answers by itself, the executor says `not_found`.
    ///
    /// # Errors
    /// [`Error::is_definition`] when a schema is not usable.
    pub fn manual(definition: Definition) -> Result<Self, Error> {
        Self::build(definition, None)
    }

    /// A tool that a native closure answers: `async |arguments| …` or `async |arguments, invocation| …`.
    ///
    /// # Errors
    /// [`Error::is_definition`] when a schema is not usable.
    pub fn native<S: 'static>(definition: Definition, function: impl NativeFn<S>) -> Result<Self, Error> {
        Self::build(definition, Some(Box::new(Native::new(function))))
    }

    /// A tool with any handler.
    ///
    /// # Errors
    /// [`Error::is_definition`] when a schema is not usable.
    pub fn with_handler(definition: Definition, handler: impl Handler) -> Result<Self, Error> {
        Self::build(definition, Some(Box::new(handler)))
    }

    fn build(definition: Definition, handler: Option<Box<dyn Handler>>) -> Result<Self, Error> {
        crate::definition::check_name(&definition.name)?;
        let compile = |schema: &Option<_>| {
            schema
                .as_ref()
                .map(Schema::compile)
                .transpose()
                .map_err(|problem| Error::definition(&definition.name, problem))
        };
        let (parameters, output) = (compile(&definition.parameters)?, compile(&definition.output)?);
        Ok(Self(Arc::new(Inner { definition, parameters, output, handler })))
    }

    /// The definition.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.0.definition
    }

    pub(crate) fn parameters(&self) -> Option<&Schema> {
        self.0.parameters.as_ref()
    }

    pub(crate) fn output(&self) -> Option<&Schema> {
        self.0.output.as_ref()
    }

    pub(crate) fn handler(&self) -> Option<&dyn Handler> {
        self.0.handler.as_deref()
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.0.definition.name).finish()
    }
}
