//! Lists the steps of the tour: the call of each, the access of its tool, and the exit code.

/// A call, and how it must end.
pub(super) struct Step {
    pub(super) title: &'static str,
    pub(super) component: &'static str,
    pub(super) tool: &'static str,
    pub(super) arguments: &'static [&'static str],
    /// The exit code that the README promises for this ending.
    pub(super) exit: i32,
    pub(super) access: StepAccess,
}

/// The access that the tool of a step has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StepAccess {
    Nothing,
    /// The grants of the tour's configuration.
    Granted,
    /// These grants, after the component was approved.
    Approved,
}

/// Placeholder for the address of the tour's server.
pub(super) const SERVER: &str = "SERVER";

/// Placeholder for the state that the step before printed with its question.
pub(super) const STATE: &str = "STATE";

const fn step(
    title: &'static str,
    component: &'static str,
    tool: &'static str,
    arguments: &'static [&'static str],
    exit: i32,
) -> Step {
    Step { title, component, tool, arguments, exit, access: StepAccess::Nothing }
}

impl Step {
    /// Gives the step the grants of the tour's configuration.
    const fn granted(mut self) -> Self {
        self.access = StepAccess::Granted;
        self
    }

    /// Gives the step these grants, and approves its component first.
    const fn approved(mut self) -> Self {
        self.access = StepAccess::Approved;
        self
    }
}

pub(super) const STEPS: &[Step] = &[
    step("A tool answers", "calculator", "calculator", &[r#"{"expression": "2 * (3 + 4) ^ 2"}"#], 0),
    step(
        "A real language, its filter and its data from the outside",
        "jq",
        "jq",
        &[
            r#"{"filter": ".[] | select(.age > 30) | .name", "input": [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 20}]}"#,
        ],
        0,
    ),
    step(
        "Text in, text out",
        "markdown",
        "markdown_to_html",
        &[r##"{"markdown": "# Hello\n\n*safe* <script>alert(1)</script>"}"##],
        0,
    ),
    step(
        "The tool reports a failure: passed through unchanged",
        "calculator",
        "calculator",
        &[r#"{"expression": "2 +* 3"}"#],
        10,
    ),
    step(
        "Arguments that do not fit: refused before any guest code runs",
        "calculator",
        "calculator",
        &[r#"{"expresion": "1"}"#],
        21,
    ),
    step(
        "The tool asks a person. Its cell is gone while the person thinks",
        "desk",
        "book_table",
        &[r#"{"date": "2030-05-04", "time": "18:30", "party_size": 2}"#],
        11,
    ),
    step(
        "... and the answer resumes it in a new cell",
        "desk",
        "book_table",
        &[
            r#"{"date": "2030-05-04", "time": "18:30", "party_size": 2}"#,
            "--state",
            STATE,
            "--answer",
            r#"{"name": "Ada"}"#,
        ],
        0,
    ),
    step(
        "A client makes up what the tool had left with its question: refused",
        "desk",
        "book_table",
        &[
            "{}",
            "--state",
            r#"{"date": "2030-05-04", "time": "18:30", "party_size": 8}"#,
            "--answer",
            r#"{"name": "Eve"}"#,
        ],
        21,
    ),
    step(
        "A tool may end the conversation",
        "desk",
        "submit_plan",
        &[
            r#"{"goal": "tea", "steps": [{"id": "pour", "title": "Pour", "depends_on": ["boil"]}, {"id": "boil", "title": "Boil water"}]}"#,
        ],
        12,
    ),
    step(
        "Wants to keep something: not even loaded without a grant, and the refusal says which",
        "notes",
        "notes",
        &[r#"{"action": "list"}"#],
        1,
    ),
    step(
        "... with that grant it is refused until a user has looked at its definition",
        "notes",
        "notes",
        &[r#"{"action": "list"}"#],
        21,
    )
    .granted(),
    step(
        "... and with a yes it keeps it",
        "notes",
        "notes",
        &[r#"{"action": "add", "title": "tea", "text": "Earl Grey"}"#],
        0,
    )
    .approved(),
    step("... for the next call, in a new cell", "notes", "notes", &[r#"{"action": "get", "title": "tea"}"#], 0)
        .granted(),
    step("Looks into the one directory that it was given", "file_search", "file_search", &[r#"{"text": "tea"}"#], 0)
        .approved(),
    step(
        "Asks the one server that it may, with a secret that the host adds and blacks out in the answer",
        "fetch",
        "fetch",
        &[r#"{"url": "http://SERVER/menu", "with_token": true}"#],
        0,
    )
    .approved(),
    step(
        "... and no other: this is where clouds keep the keys of machines",
        "fetch",
        "fetch",
        &[r#"{"url": "http://169.254.169.254/latest/meta-data"}"#],
        10,
    )
    .granted(),
    step("Hostile: an endless loop, until its fuel is spent", "mischief", "spin", &["--fuel", "50000000"], 20),
    step(
        "Hostile: an endless loop, until its time is over",
        "mischief",
        "spin",
        &["--timeout", "200ms", "--fuel", "1000000000000"],
        20,
    ),
    step("Hostile: asleep, until its time is over", "mischief", "sleeps", &["--timeout", "200ms"], 20),
    step("Hostile: takes all the memory there is", "mischief", "hoard", &["--memory", "16MiB"], 20),
    step("Hostile: calls itself without end", "mischief", "dive", &[], 20),
    step("Careless: a panic", "mischief", "panics", &[r#"{"words": "I did not think of that"}"#], 20),
    step("Hostile: leaves by the back door", "mischief", "exits", &[r#"{"code": 0}"#], 20),
    step("Hostile: promises a number and returns a story", "mischief", "lies", &[], 20),
    step("Curious: looks for files, environment and input", "mischief", "looks_around", &[], 0),
    step("Greedy: wants sockets. Each try is denied", "prober", "probe", &[r#"{"address": "127.0.0.1:22"}"#], 0),
];
