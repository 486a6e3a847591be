//! Runs test cases: each in its own engine, with its own clock, seed, secrets, key-value data and
//! answers.
//!
//! [`Cases::read`] takes the settings of an engine (the compiler and runtime of WebAssembly), a
//! component and its case files; [`Cases::run`] runs the cases one after the other and returns a
//! report. For each case it builds an engine with the recorded HTTP answers, an in-memory key-value
//! store and a fixed seed, loads the component with the grants that [`grants`] derives from the
//! tool's declared needs (the accesses that its author lists), makes the call and compares the
//! ending. A case that ends otherwise than expected is part of the report; an unknown tool, an
//! invalid case or an unusable component is an error. With [`Options::update`], endings that differ
//! are written into the file after all of its cases have run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use toolcell::call::Resume;
use toolcell::component::{ComponentBytes, ComponentKind, LoadOptions, OnMissingGrant};
use toolcell::grants::{GrantKind, Injection, Method, SecretGrant, Target};
use toolcell::http::{CannedResponse, Egress};
use toolcell::kv::{KeyStore as _, Namespace, SqliteStore};
use toolcell::runtime::{Deterministic, EngineBuilder, Isolation, Optimise, Placement};
use toolcell::secrets::{Secret, StoredSecrets};
use toolcell::tool::Need;
use toolcell::{
    CallContext, CallOptions, CallResult, Completion, Component, Definition, Engine, Grants, Json,
    ToolCall, ToolError,
};

use super::coverage::coverage;
use super::file::{self, Case, Context, Exchange, Expect, OtherTool, Suite};
use super::{CaseReport, Report, compare, others, rewrite};
use crate::{Error, ErrorKind, Result, SourceLine, source_lines};

/// The name of the key-value store of a case.
const STORE: &str = "case";
/// The call id of a case. Random numbers depend on it, so it is fixed.
const CALL: &str = "call-1";

/// Settings for running cases.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Runs only cases whose name contains this.
    pub filter: Option<String>,
    /// Writes the actual ending into the file if it differs from the expected one. The rest of the
    /// file stays. A case over its budget still fails: only its author may change the budget.
    pub update: bool,
    /// Adds the coverage to the report.
    pub coverage: bool,
}

/// The cases of a component, ready to run.
#[derive(Debug)]
pub struct Cases {
    /// Settings of the engine: compilation and cache.
    engine: EngineBuilder,
    component: Vec<u8>,
    kind: ComponentKind,
    files: Vec<(PathBuf, Suite)>,
}

impl Cases {
    /// Reads the component and the files of cases. `engine` configures compilation and the cache.
    ///
    /// # Errors
    /// [`ErrorKind::File`] and [`ErrorKind::Cases`].
    pub fn read(engine: EngineBuilder, component: &Path, files: &[PathBuf]) -> Result<Self, Error> {
        let found = fs::metadata(component).map_err(Error::file("read", component))?;
        // Opening a pipe would wait for its writer, and a device may have no end.
        if !found.is_file() {
            let message = format!("`{}` is not a file", component.display());
            return Err(Error::new(ErrorKind::File, message, "name the file of a component"));
        }
        let bytes = fs::read(component).map_err(Error::file("read", component))?;
        let files: Result<_> =
            files.iter().map(|path| Ok((path.clone(), file::read(path)?))).collect();
        // Cases run one at a time, so they need no fair scheduling. On threads of lower priority, a
        // busy machine would end a case at its time limit.
        let engine = engine
            .isolation(Isolation::Strict)
            .optimise(Optimise::Never)
            .placement(Placement::Inline);
        Ok(Self { engine, component: bytes, kind: ComponentKind::Tools, files: files? })
    }

    /// Loads the component as this kind instead of one that describes its own tools.
    #[must_use]
    pub fn with_kind(self, kind: ComponentKind) -> Self {
        Self { kind, ..self }
    }

    fn loaded(&self) -> ComponentBytes {
        ComponentBytes::new(self.component.clone(), self.kind.clone())
    }

    /// Runs the cases, one after the other.
    ///
    /// # Errors
    /// [`ErrorKind::Cases`] for a case that cannot be run, for example because its tool is unknown;
    /// [`ErrorKind::Source`] if the component cannot be loaded. A case that ends otherwise than
    /// expected is part of the report.
    ///
    /// # Cancel safety
    /// May be dropped. A file is written only after all of its cases have run.
    pub async fn run(mut self, options: &Options) -> Result<Report, Error> {
        let tools = self.offered_tools().await?;
        let mut report =
            Report { passed: 0, failed: 0, updated: 0, cases: Vec::new(), coverage: None };
        let mut arguments = Vec::new();
        let mut files = std::mem::take(&mut self.files);
        for (path, suite) in &mut files {
            let mut updated = Vec::new();
            for (number, case) in suite.cases.iter_mut().enumerate() {
                if options.filter.as_ref().is_some_and(|part| !case.name.contains(part)) {
                    continue;
                }
                let ended = self.run_case(path, case, &tools, options.update).await?;
                if ended.updated {
                    case.expect = Some(ended.outcome.clone());
                    updated.push(number);
                }
                report.passed += usize::from(ended.passed && !ended.updated);
                report.updated += usize::from(ended.updated);
                report.failed += usize::from(!ended.passed);
                report.cases.push(ended);
                arguments.push(case.arguments.clone());
            }
            if !updated.is_empty() {
                rewrite::write_endings(path, suite, &updated)?;
            }
        }
        if options.coverage {
            let covered = tools.iter().map(|tool| coverage(tool, &report.cases, &arguments));
            report.coverage = Some(covered.collect());
        }
        Ok(report)
    }

    /// Returns the names of the component's tools, in its order.
    ///
    /// # Errors
    /// Fails if the component cannot be loaded.
    pub async fn tools(&self) -> Result<Vec<String>, Error> {
        Ok(self.offered_tools().await?.into_iter().map(|tool| tool.name).collect())
    }

    /// Returns the component's tools, in its order.
    pub(super) async fn offered_tools(&self) -> Result<Vec<Definition>> {
        let engine = self.engine.clone().build().map_err(unusable_component)?;
        let options = LoadOptions { missing: OnMissingGrant::Denied, ..LoadOptions::default() };
        let component = Component::load_with(&engine, self.loaded(), options).await;
        Ok(component.map_err(unusable_component)?.definitions().cloned().collect())
    }

    async fn run_case(
        &self,
        path: &Path,
        case: &Case,
        tools: &[Definition],
        update: bool,
    ) -> Result<CaseReport> {
        let fault = |problem: String, hint: &str| {
            let message = format!("{}: the case `{}`: {problem}", path.display(), case.name);
            Error::cases(message, hint)
        };
        let tool = match (&case.tool, tools) {
            (None, [only]) => Ok(only),
            (None, _) => Err("it names no tool".to_owned()),
            (Some(name), _) => {
                let found = tools.iter().find(|tool| tool.name == *name);
                found.ok_or_else(|| format!("there is no tool `{name}`"))
            }
        };
        let tool = tool.map_err(|problem| {
            let known: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
            fault(problem, &format!("name one of: {}", known.join(", ")))
        })?;
        let completion = self
            .complete(case, tool)
            .await
            .map_err(|error| fault(error.to_string(), &error.hint()))?;
        let lines = self.lines(&completion.result);
        let expect = case.expect.clone().unwrap_or_default();
        let judge =
            |expect: &Expect, budget| compare::failures(&completion, &lines, expect, budget);
        let mut seen = compare::actual(&completion.result);
        let mut failures = judge(&expect, case.budget)?;
        let mut passed = failures.is_empty();
        let updated = update && !judge(&expect, None)?.is_empty();
        if updated {
            // Conditions of the author beyond the ending itself stay if they still hold.
            seen.add_conditions(expect, |one| Ok(judge(one, None)?.is_empty()))?;
            // Once the ending is as expected, only the budget can fail.
            let left = judge(&seen, case.budget)?;
            passed = left.is_empty();
            if !passed {
                failures = left;
            }
        }
        Ok(CaseReport {
            file: path.to_owned(),
            name: case.name.clone(),
            tool: tool.name.clone(),
            passed,
            failures,
            updated,
            outcome: seen,
            fuel: completion.usage.fuel,
            memory: completion.usage.peak_memory,
            time: completion.usage.wall,
        })
    }

    /// Returns the places of a trap in the author's files. The component is the author's own, so
    /// reading its debug information needs no limits.
    pub(super) fn lines(&self, result: &CallResult) -> Vec<SourceLine> {
        if let CallResult::ToolError(ToolError::HandlerRaised(raised)) = result {
            source_lines(&self.component, &raised.frames)
        } else {
            Vec::new()
        }
    }

    /// Makes the call of a case in its own engine. The message of an error does not name the case.
    pub(super) async fn complete(&self, case: &Case, tool: &Definition) -> Result<Completion> {
        let engine = self.engine_of(case, &tool.name)?;
        let grants = grants(&tool.needs, &case.tools).map_err(|problem| {
            Error::cases(problem, "correct what the tool declares as `needs`")
        })?;
        let options =
            LoadOptions { grants, missing: OnMissingGrant::Denied, ..LoadOptions::default() };
        let component = Component::load_with(&engine, self.loaded(), options).await;
        let component = component.map_err(unusable_component)?;
        let executor = others::executor(&case.tools, component.tools())?;
        let arguments = case.arguments.as_ref().map_or("{}".to_owned(), ToString::to_string);
        let call = ToolCall::new(CALL, tool.name.as_str(), arguments);
        let options = CallOptions {
            context: Arc::new(context(case.context.clone().unwrap_or_default())),
            ..CallOptions::default()
        };
        let tool = component.tool(&tool.name).map_err(unusable_component)?;
        Ok(executor.call(tool, call, options).await)
    }

    fn engine_of(&self, case: &Case, tool: &str) -> Result<Engine> {
        let mut secrets = StoredSecrets::default();
        for (name, value) in &case.secrets {
            let value = Secret::new(value.as_str()).map_err(|error| {
                Error::cases(format!("the secret `{name}`: {error}"), "use another value")
            })?;
            secrets = secrets.with(name.as_str(), value);
        }
        let keys = SqliteStore::in_memory();
        let tenant = case.context.as_ref().and_then(|context| context.tenant.as_deref());
        for (key, value) in &case.kv {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let kept = keys.set(&Namespace::new(tenant, STORE), key, value.as_bytes(), None);
            kept.map_err(|error| {
                Error::cases(format!("the key `{key}`: {error}"), "correct the key or its value")
            })?;
        }
        let answers = lookup_answers(&case.http)?;
        let now = case.now.as_deref().map(date).transpose()?;
        let seed = Some(case.seed.unwrap_or_default());
        let fixed = Deterministic { now, seed, ..Deterministic::default() };
        self.engine
            .clone()
            .secrets(secrets)
            .keys(keys)
            .egress(Egress::new().with_canned_responses(answers))
            .deterministic(fixed)
            .build()
            .map_err(|error| {
                Error::cases(format!("`{tool}` cannot be run: {error}"), "see the message")
            })
    }
}

/// Returns a function that looks up the answer to a request among the case's exchanges.
fn lookup_answers(
    exchanges: &[Exchange],
) -> Result<impl Fn(Method, &Target) -> Option<CannedResponse> + Send + Sync + 'static> {
    let mut known = Vec::new();
    for exchange in exchanges {
        let method = Method::parse(&exchange.method).ok_or_else(|| {
            let message = format!("there is no method `{}`", exchange.method);
            Error::cases(message, "use GET, POST and so on")
        })?;
        let hint = "write an absolute URL, for instance `https://api.example.com/v1`";
        let target = Target::parse(&exchange.url).map_err(|problem| {
            Error::cases(format!("`{}` is not a URL: {problem}", exchange.url), hint)
        })?;
        let mut headers: Vec<_> =
            exchange.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let body = match (&exchange.body, &exchange.json) {
            (Some(body), _) => body.clone(),
            (None, Some(json)) => {
                let is_type = |name: &String| name.eq_ignore_ascii_case("content-type");
                if !exchange.headers.keys().any(is_type) {
                    headers.push(("content-type".to_owned(), "application/json".to_owned()));
                }
                json.to_string()
            }
            (None, None) => String::new(),
        };
        known.push((
            method,
            target,
            CannedResponse { status: exchange.status, headers, body: body.into_bytes() },
        ));
    }
    Ok(move |method, target: &Target| {
        let found =
            known.iter().find(|(asked, at, _)| *asked == method && at.as_str() == target.as_str());
        found.map(|(_, _, answer)| answer.clone())
    })
}

/// Returns the grants for a tool's declared needs. A case is granted all of them.
pub(crate) fn grants(needs: &[Need], tools: &[OtherTool]) -> Result<Grants, String> {
    let mut grants = Grants::default();
    grants.invoke = others::rules(needs, tools)?;
    grants.store = Some(STORE.to_owned());
    let of_kind = |kind: GrantKind| needs.iter().filter(move |need| need.kind == kind.row().need);
    // A case grants no other kind.
    for kind in [GrantKind::Http, GrantKind::Kv, GrantKind::Reveal] {
        for need in of_kind(kind) {
            grants.add(kind, &need.pattern).map_err(|error| error.to_string())?;
        }
    }
    if let Some(rule) = grants.http.first().cloned() {
        for need in of_kind(GrantKind::Secrets) {
            let grant = SecretGrant::new(rule.clone(), Injection::Bearer);
            grants.secrets.insert(need.pattern.clone(), grant);
        }
    }
    Ok(grants)
}

fn context(from: Context) -> CallContext {
    let mut context = CallContext::default();
    context.session_id = from.session_id;
    context.request_id = from.request_id;
    context.thread_id = from.thread_id;
    context.run_id = from.run_id;
    context.tenant = from.tenant;
    context.metadata = from.metadata.map(Json::from);
    context.attempt = from.attempt;
    context.resume = from
        .answer
        .map(|answer| Resume { answer: Json::from(answer), state: from.state.map(Json::from) });
    context
}

/// Parses an RFC 3339 time.
fn date(text: &str) -> Result<SystemTime> {
    let date = humantime::parse_rfc3339(text).ok().filter(|date| *date >= SystemTime::UNIX_EPOCH);
    date.ok_or_else(|| {
        let hint = "write it as in RFC 3339, for instance 2026-01-31T12:00:00Z";
        Error::cases(format!("`now` is not a date: `{text}`"), hint)
    })
}

fn unusable_component(error: toolcell::Error) -> Error {
    Error::source(format!("the component cannot be used: {error}"), error.hint())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn own_content_type_of_a_json_answer_stays() {
        for (headers, expected) in [
            (json!({}), ("content-type", "application/json")),
            (json!({"Content-Type": "a/b+json"}), ("Content-Type", "a/b+json")),
        ] {
            let exchange = json!({"url": "https://a.example/", "headers": headers, "json": 1});
            let exchanges: [Exchange; 1] = [serde_json::from_value(exchange).expect("an exchange")];
            let answers = lookup_answers(&exchanges).expect("answers");
            let target = Target::parse("https://a.example/").expect("a URL");
            let answer = answers(Method::Get, &target).expect("an answer");
            let expected = (expected.0.to_owned(), expected.1.to_owned());
            assert_eq!((answer.headers, answer.body), (vec![expected], b"1".to_vec()));
        }
    }
}
