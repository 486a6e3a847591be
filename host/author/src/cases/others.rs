//! Provides the other tools that the tool of a test case can call.
//!
//! The runner of cases calls [`executor`] with the answers that the case gives for calls of other
//! tools, and with the tools of the component itself. It returns an executor (the part of the
//! library that makes calls) that knows exactly these tools: one that the case names returns the
//! first answer whose arguments match, and the others of the component run as they are. An answer
//! of the case takes precedence over a tool of the component of that name. [`rules`] returns the
//! grants with which the tool may call the tools that it declares to need; no other tool can be
//! called.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolcell::grants::InvokeRule;
use toolcell::outcome::Halt;
use toolcell::tool::Need;
use toolcell::{Definition, Executor, Outcome, Question, Tool};

use super::file::OtherTool;
use crate::{Error, Result};

/// The pattern in a need of a tool that calls any tool that it is granted.
const ANY_TOOL: &str = "*";

/// Returns an executor whose tools can call the tools of the case and those of their component.
pub(super) fn executor(answers: &[OtherTool], own: &[Tool]) -> Result<Executor> {
    let mut known = BTreeMap::<String, Vec<OtherTool>>::new();
    for answer in answers {
        known.entry(answer.name.clone()).or_default().push(answer.clone());
    }
    let mut tools: BTreeMap<_, _> =
        own.iter().map(|tool| (tool.definition().name.clone(), tool.clone())).collect();
    for (name, answers) in known {
        let tool = scripted_tool(&name, answers)
            .map_err(|error| Error::cases(format!("`tools`: {error}"), error.hint()))?;
        tools.insert(name, tool);
    }
    // The case contains the state of a question in the clear, and there is no untrusted client.
    Ok(Executor::new().without_sealer().with_callable(move |name| tools.get(name).cloned()))
}

fn scripted_tool(name: &str, answers: Vec<OtherTool>) -> Result<Tool, toolcell::Error> {
    let answers = Arc::new(answers);
    let definition = Definition::new(name, "Answers as the case says.")?;
    Tool::native(definition, async move |arguments: Value| outcome(&answers, &arguments))
}

/// Returns the first answer that matches these arguments.
fn outcome(answers: &[OtherTool], arguments: &Value) -> Outcome {
    let fits = |answer: &&OtherTool| {
        answer.arguments.as_ref().is_none_or(|expected| expected == arguments)
    };
    let Some(answer) = answers.iter().find(fits) else {
        return Outcome::error(format!("the case has no answer for these arguments: {arguments}"));
    };
    match answer {
        OtherTool { error: Some(message), .. } => Outcome::error(message),
        OtherTool { ask_user: Some(question), .. } => Outcome::AskUser(Question::new(question)),
        OtherTool { halt: Some(reason), .. } => Outcome::Halt(Halt::new(reason, Value::Null)),
        OtherTool { ok, .. } => Outcome::ok(ok.clone().unwrap_or_default()),
    }
}

/// Returns the rules for the tools that a tool declares to call. The rules say `own`, so that a
/// called tool keeps its own rights: rights do not restrict native code.
pub(super) fn rules(needs: &[Need], answers: &[OtherTool]) -> Result<Vec<InvokeRule>, String> {
    let mut names = Vec::new();
    for need in needs.iter().filter(|need| need.kind == "invoke") {
        if need.pattern == ANY_TOOL {
            names.extend(answers.iter().map(|answer| answer.name.as_str()));
        } else {
            names.push(&need.pattern);
        }
    }
    let own = |name: &str| format!("own {}", name.strip_prefix("own ").unwrap_or(name));
    let rules = names.into_iter().map(|name| own(name).parse::<InvokeRule>());
    rules.map(|rule| rule.map_err(|error| error.to_string())).collect()
}
