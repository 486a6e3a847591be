//! `toolcell learn`: what a tool asks for when it is given nothing, as lines to be pasted.
//!
//! Invariants: the tool is granted nothing, whatever the configuration says; what it asked for is text of a stranger.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use toolcell::{
    CallOptions, CallResult, DEFAULT_ARGUMENTS, Denial, Event, Executor, Layer, Request, Suggestion, ToolCall,
};

use crate::args::{DEFAULT_ID, Global, LearnArgs};
use crate::config::{Config, Wanted};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::{components, explain, files, host};

/// Denials that are kept: a tool can ask a hundred thousand times.
const MAX_DENIALS: usize = 1000;

/// Learns.
pub(crate) async fn learn(printer: &Printer, global: &Global, args: &LearnArgs) -> Result<ExitStatus, Failure> {
    let arguments = files::arguments(&args.arguments, DEFAULT_ARGUMENTS)?;
    let config = Config::read_with(global, Wanted::None)?;
    let engines = host::engines(printer, global, 1, &config)?;
    let (chosen, tool) = explain::find(printer, &engines, &config, args.component.as_deref(), &args.tool).await?;
    let denials = Arc::<Mutex<Vec<Denial>>>::default();
    let heard = Arc::clone(&denials);
    let executor = Executor::new().with_limits(args.limits.over(chosen.limits)).with_events(move |event| {
        if let Event::Denied { denial, .. } = event {
            let mut heard = heard.lock();
            if heard.len() < MAX_DENIALS && !heard.contains(&denial) {
                heard.push(denial);
            }
        }
    });
    let tool = tool.with_limits(chosen.limits_of(&args.tool));
    let call = ToolCall::new(DEFAULT_ID, &args.tool, arguments.text);
    let result = executor.call(&tool, call, CallOptions::default()).await.result;
    if let CallResult::Refusal(refusal) = &result {
        printer.note("error", &refusal.to_string());
        printer.note("hint", refusal.hint());
        return Ok(ExitStatus::Refusal);
    }
    let denials = std::mem::take(&mut *denials.lock());
    let mut asked = Suggestion::default();
    for denial in denials.iter().filter(|denial| denial.layer == Layer::Granted) {
        if let Ok(request) = Request::parse(&denial.request) {
            asked.add(&request);
        }
    }
    let hopeless = |denial: &&Denial| matches!(denial.layer, Layer::Declared | Layer::Host);
    let hopeless: Vec<_> = denials.iter().filter(hopeless).collect();
    let mut declared = Suggestion::default();
    tool.definition().needs.iter().for_each(|need| declared.add_need(need));
    let ending = ExitStatus::from(&result);
    if args.json {
        let (asked, declared) = (asked.lines(), declared.lines());
        printer.json(&json!({
            "tool": args.tool, "ended": result, "denied": denials, "grants": asked, "declared": declared,
        }))?;
        return Ok(ExitStatus::Ok);
    }
    if asked.is_empty() {
        printer.note("note", "it asked for nothing that a grant could allow");
    } else {
        printer.text(&asked.lines().join("\n"))?;
        printer.note("hint", &components::advice(&config, &chosen, &asked));
        if let Some(section) = chosen.section_of(&args.tool) {
            printer.note("note", &format!("[{section}] narrows this tool: what it names has to leave these too"));
        }
    }
    for denial in hopeless {
        printer.note("note", &format!("{denial}: no grant would allow it"));
    }
    if !declared.is_empty() {
        printer.note("note", &format!("it declares that it needs:\n{}", declared.lines().join("\n")));
    }
    if ending != ExitStatus::Ok {
        printer.note("note", "it did not end well without what it asked for: with these grants it may ask for more");
    }
    Ok(ExitStatus::Ok)
}
