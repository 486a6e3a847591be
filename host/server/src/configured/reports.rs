//! What of a configuration is not served, or not as it should be, as `/ready` reports it.
//!
//! Invariants: everyone sees no name of a component, a tenant or a secret; the operator sees all of
//! it.

use toolcell_config::{Error, Loaded, Reason};

use crate::service::Service;

/// What a reload that failed is reported as.
const CONFIGURATION: &str = "configuration";
/// What components with problems are reported as.
const COMPONENTS: &str = "components";

/// Of a configuration that was found, for everyone: the whole command, with its options, is told to
/// the operator.
const NOT_APPROVED: &str = "the operator has not approved it in its present form (`toolcell approve` shows it and asks for your approval)";

/// Ends the report of a reload that failed.
pub(super) fn reloaded(service: &Service) {
    service.report(CONFIGURATION, None);
}

/// Reports a changed configuration that is not served. The server stays ready, because it serves
/// what it did before: otherwise all servers that share the file would be taken out of service at
/// once. Everyone sees the place of the first error, the operator what it is.
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

/// Reports components that are not served, or not wholly. Only the operator sees which.
pub(super) fn problems(service: &Service, loaded: &Loaded) {
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
