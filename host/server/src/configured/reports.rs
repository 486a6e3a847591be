//! Reports to `/ready` the parts of a configuration that are not served, or only partly.
//!
//! `ConfigServer` calls it after each attempt to load the configuration: for components and tenants
//! with a problem, for a changed file that cannot be used, and to clear the report after a
//! successful reload. Each report has a public summary, which names no component, tenant or secret,
//! and details for the operator. The server stays ready, because it serves what it can or what it
//! served before.

use toolcell_config::{Error, LoadedTools, Reason};

use crate::service::Service;

/// The source under which a failed reload is reported.
const CONFIGURATION: &str = "configuration";
/// The source under which components with problems are reported.
const COMPONENTS: &str = "components";

/// The public text for a configuration that was found and is not approved. The operator is told the
/// whole command, with its options.
const NOT_APPROVED: &str = "the operator has not approved it in its present form (`toolcell approve` shows it and asks for your approval)";

/// Clears the report of a failed reload.
pub(super) fn reloaded(service: &Service) {
    service.report(CONFIGURATION, None);
}

/// Reports a changed configuration that is not served. The server stays ready, because it serves
/// the previous one: otherwise all servers that share the file would go out of service at once. The
/// public part has the place of the first error, the operator's part the error.
pub(super) fn not_reloaded(service: &Service, error: &Error) {
    let message = match error.problems().first() {
        Some(problem) => {
            format!("{}:{}:{} cannot be used", problem.file, problem.line, problem.column)
        }
        None if matches!(error, Error::NotApproved { .. }) => {
            format!("the changed configuration is not served: {NOT_APPROVED}")
        }
        None => "the changed configuration cannot be used: the operator's log says why".to_owned(),
    };
    service.report_degraded(CONFIGURATION, message, vec![error.to_string()]);
}

/// Reports components that are not served, or only partly. Only the operator sees which.
pub(super) fn problems(service: &Service, loaded: &LoadedTools) {
    let details: Vec<_> = loaded.problems().iter().map(ToString::to_string).collect();
    let is_unapproved =
        loaded.problems().iter().any(|problem| problem.reason == Reason::ConfigurationNotApproved);
    let summary = match details.len() {
        _ if is_unapproved => format!("nothing of the configuration is served: {NOT_APPROVED}"),
        1 => "1 component or tenant has a problem: the operator's log says which".to_owned(),
        several => {
            format!("{several} components or tenants have a problem: the operator's log says which")
        }
    };
    service.report_degraded(COMPONENTS, summary, details);
}
