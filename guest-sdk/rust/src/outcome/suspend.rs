//! The two outcomes that suspend or end the agent loop: a question to a person, and a halt.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::json::Json;
use crate::schema;

/// A question to a person.
///
/// The question ends the call. Once the person has answered, the tool is called again with the same
/// arguments; [`Context::answer`](crate::Context::answer) has the answer, and
/// [`Context::state`](crate::Context::state) has the [`state`](Self::state) that the first call
/// left.
///
/// ```
/// use toolcell_guest::{Context, Failure, Outcome, Question, json, tool};
///
/// /// Books a table.
/// #[tool]
/// fn book(guests: u32, context: &Context) -> Result<Outcome, Failure> {
///     let Some(answer) = context.answer::<String>() else {
///         let offered = ["18:00", "20:00"];
///         return Ok(Question::new("When?").options(offered).state(json!({ "offered": offered })).into());
///     };
///     Ok(Outcome::ok(format!("{guests} guests at {}", answer?)))
/// }
///
/// // A test calls the tool twice, as the host does.
/// let first = book(2, &Context::default()).expect("an outcome");
/// let question = first.question().expect("a question");
/// assert_eq!(question.offered(), Some(json!(["18:00", "20:00"])));
/// let answered = Context::default().with_answer("20:00").with_state(question.left_state());
/// let second = book(2, &answered).expect("an outcome");
/// assert_eq!(second.value(), Some(json!("2 guests at 20:00")));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub(crate) question: String,
    pub(crate) options: Option<Json>,
    pub(crate) answer_schema: Option<Json>,
    pub(crate) state: Option<Json>,
}

impl Question {
    /// A question with this text.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), options: None, answer_schema: None, state: None }
    }

    /// Sets the choices to offer, as JSON in the form that the application expects: often a list of
    /// texts.
    #[must_use]
    pub fn options(mut self, options: impl Serialize) -> Self {
        self.options = Some(Json::of(&options));
        self
    }

    /// Sets the JSON Schema of the answer.
    #[must_use]
    pub fn answer_schema<T: JsonSchema>(mut self) -> Self {
        self.answer_schema = Some(Json::of(&schema::of_input::<T>()));
        self
    }

    /// Adds a named question. The answer becomes an object with a member of this name and type for
    /// each named question.
    ///
    /// ```
    /// use toolcell_guest::{Question, json};
    ///
    /// let question = Question::new("A few things about the trip")
    ///     .field::<String>("city", "Where to?")
    ///     .field::<u8>("guests", "For how many?");
    /// let schema = question.schema().expect("a schema");
    /// assert_eq!(schema["required"], json!(["city", "guests"]));
    /// assert_eq!(schema["properties"]["guests"]["title"], "For how many?");
    /// ```
    #[must_use]
    pub fn field<T: JsonSchema>(mut self, name: &str, question: &str) -> Self {
        let mut schema = self.schema().filter(|schema| schema["properties"].is_object()).unwrap_or_else(
            || json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
        );
        let mut field = schema::of_input::<T>();
        if let Some(field) = field.as_object_mut() {
            field.insert("title".into(), question.into());
        }
        schema["properties"][name] = field;
        if let Some(required) =
            schema["required"].as_array_mut().filter(|names| !names.iter().any(|it| it == name))
        {
            required.push(name.into());
        }
        self.answer_schema = Some(Json::of(&schema));
        self
    }

    /// The JSON Schema of the answer, if there is one.
    pub fn schema(&self) -> Option<Value> {
        self.answer_schema.as_ref()?.parse()
    }

    /// Sets the state that the tool gets back with the answer: at most 64 KiB as JSON.
    ///
    /// The state passes through the caller. A host may or may not seal it, so do not put secrets
    /// into it. The host does not record which questions were answered, so the same answer may
    /// arrive twice.
    #[must_use]
    pub fn state(mut self, state: impl Serialize) -> Self {
        self.state = Some(Json::of(&state));
        self
    }

    /// The text of the question.
    pub fn text(&self) -> &str {
        &self.question
    }

    /// The offered choices, if there are any.
    pub fn offered(&self) -> Option<Value> {
        self.options.as_ref()?.parse()
    }

    /// The state, if one was set.
    pub fn left_state(&self) -> Option<Value> {
        self.state.as_ref()?.parse()
    }
}

impl From<&str> for Question {
    fn from(question: &str) -> Self {
        Self::new(question)
    }
}

impl From<String> for Question {
    fn from(question: String) -> Self {
        Self::new(question)
    }
}

/// The end of the agent loop: the model is not asked again, and the application gets the result.
///
/// ```
/// use toolcell_guest::{Halt, Outcome, json, tool};
///
/// /// Submits the plan.
/// #[tool]
/// fn submit(plan: String) -> Halt {
///     Halt::new("plan_submitted", json!({ "plan": plan }))
/// }
///
/// let outcome: Outcome = submit("1. measure".into()).into();
/// let halt = outcome.halt().expect("a halt");
/// assert_eq!((halt.reason(), halt.result()), ("plan_submitted", Some(json!({ "plan": "1. measure" }))));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Halt {
    pub(crate) reason: String,
    pub(crate) result: Json,
}

impl Halt {
    /// Ends the loop with this result.
    ///
    /// `reason` is any word that is not blank. The host reserves `ask_user`, `max_turns`,
    /// `halt_when`, `tool_error`, `cancelled` and `completed`, and reports an error if a tool uses
    /// one of them.
    pub fn new(reason: impl Into<String>, result: impl Serialize) -> Self {
        Self { reason: reason.into(), result: Json::of(&result) }
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The result. `None` if it cannot be written as JSON.
    pub fn result(&self) -> Option<Value> {
        self.result.parse()
    }
}
