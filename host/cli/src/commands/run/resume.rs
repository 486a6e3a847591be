//! Writes the command that answers a tool's question, and the advice if an answer is refused.
//!
//! A tool can end its call with a question and a state, which the host seals (encrypts) for the
//! caller to keep. If the terminal gives no answer, `run` prints [`hint`]: a command with the
//! same component, tool, arguments and options, the state, and `--answer ANSWER`. It can be pasted
//! into a POSIX shell and makes the same call again, because an answer is accepted only with
//! identical arguments. Arguments from a file are repeated as `@FILE`. Those from standard input
//! are repeated up to 4096 bytes; otherwise the command has `-`, and the hint asks for the same
//! input. [`remedy`] returns the advice for each reason for which the host refuses a state.

use toolcell::Question;
use toolcell::outcome::ResumeFault;

use super::TypedCall;
use crate::args::DEFAULT_ID;
use crate::config::quoted;
use crate::os::env;
use crate::print::clean;

/// Arguments up to this size are repeated in the command.
const MAX_REPEATED: usize = 4096;

/// Returns the hint with the command that answers the question.
pub(super) fn hint(typed: &TypedCall<'_>, question: &Question) -> String {
    let TypedCall { args, .. } = typed;
    let mut words = vec![
        env::program(),
        "run".into(),
        args.call.component.to_string_lossy().into_owned(),
        typed.origin.definition.name.clone(),
    ];
    let mut before = "to answer, replace ANSWER with your answer:";
    if let Some(arguments) = repeated(typed) {
        words.push(arguments);
    } else {
        words.push("-".to_owned());
        before = "to answer, replace ANSWER with your answer, and repeat the standard input:";
    }
    words.extend(typed.origin.config.hint.words());
    words.extend(args.limits.words());
    // A new option that changes the call needs a line: without it, the pasted call differs.
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    for rule in &args.grants.rules {
        option("--grant", rule.clone());
    }
    if let Some(tenant) = &args.tenant {
        option("--tenant", tenant.clone());
    }
    if args.id != DEFAULT_ID {
        option("--id", args.id.clone());
    }
    if let Some(context) = args.context.as_ref().map(|context| without_resume(context)) {
        option("--context", context);
    }
    // A sealed state is a JSON string of plain characters.
    if let Some(Ok(state)) =
        question.state.as_ref().map(|state| serde_json::from_str(state.as_str()))
    {
        option("--state", state);
    }
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    format!("{before}\n{} --answer ANSWER", words.join(" "))
}

/// Returns the arguments as one word of a further command: their file, or their text. `None` if
/// only standard input has them.
pub(super) fn repeated(typed: &TypedCall<'_>) -> Option<String> {
    let TypedCall { args, arguments, .. } = typed;
    let mut words = args.call.tool.iter().chain(&args.call.arguments);
    let given = words.find(|word| *word == "-" || word.starts_with('@'));
    if let Some(file) = given.filter(|word| *word != "-") {
        return Some(file.clone());
    }
    // Harmful characters are escaped here, because the printer would remove them: an answer
    // requires identical arguments.
    (given.is_none() || arguments.len() <= MAX_REPEATED).then(|| clean::json_line(arguments.trim()))
}

/// Returns the advice for an answer that is refused.
pub(super) fn remedy(fault: ResumeFault) -> &'static str {
    match fault {
        ResumeFault::Missing => "repeat the `--state` that came with the question",
        ResumeFault::Tampered => {
            "copy `--state` whole, and use the state directory of the call that asked"
        }
        ResumeFault::Expired | ResumeFault::Upgraded => {
            "leave out `--answer` and `--state`: the tool asks again"
        }
        ResumeFault::Foreign => "with `--tenant`, name the tenant of the call that asked",
        ResumeFault::OtherTool => "call the tool that asked",
        ResumeFault::OtherArguments => {
            "pass the same arguments as in the call that asked the question"
        }
    }
}

/// Returns the context without the answer to the previous question.
fn without_resume(context: &str) -> String {
    match serde_json::from_str(context) {
        Ok(serde_json::Value::Object(mut members)) => {
            members.remove("resume");
            clean::json_line(&serde_json::Value::Object(members).to_string())
        }
        Ok(_) | Err(_) => context.to_owned(),
    }
}
