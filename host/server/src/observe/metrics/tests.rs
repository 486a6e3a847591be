//! Tests that labels in metrics are names of tenants and tools, and that their number is bounded.
//!
//! Names that clients invent must be counted together. Denials and refusals are counted by their
//! kind only. The use of engines must be read when the metrics are.

use serde_json::json;
use toolcell::grants::{Denial, Layer};
use toolcell::{Outcome, Usage};

use super::*;

fn completed(name: &str) -> Event {
    let result = toolcell::CallResult::Outcome(Outcome::ok(json!("canary-result")));
    Event::Completed {
        id: "canary-id".into(),
        name: name.into(),
        result,
        usage: Usage::default(),
        parent: None,
    }
}

#[track_caller]
fn has_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|told| told == *line), "{line}: {text}");
    }
}

#[test]
fn invented_names_are_counted_as_other() {
    let metrics = Metrics::new(InUseSource::default());
    let acme = metrics.of_tenant(Some("acme"), ["echo".to_owned()].into_iter());
    acme.count(&completed("echo"));
    for number in 0..5000 {
        acme.count(&completed(&format!("canary-{number}")));
    }
    // Tenants and tools change with the configuration.
    for number in 0..5000 {
        let tenant = format!("t{number}");
        let tenant = metrics.of_tenant(Some(&tenant), ["echo".to_owned()].into_iter());
        tenant.count(&completed("echo"));
    }
    let text = metrics.text(0);
    let lines = [
        r#"toolcell_calls_total{tenant="acme",tool="echo",outcome="ok"} 1"#,
        r#"toolcell_calls_total{tenant="acme",tool="other",outcome="ok"} 5000"#,
        r#"toolcell_calls_total{tenant="other",tool="other",outcome="ok"} 4002"#,
    ];
    has_lines(&text, &lines);
    let series = text.lines().filter(|line| line.starts_with("toolcell_calls_total")).count();
    assert_eq!(series, MAX_PAIRS + 1);
    assert!(!text.contains("canary"));
}

#[test]
fn denials_and_refusals_are_counted_by_kind_only() {
    let metrics = Metrics::new(InUseSource::default());
    let acme = metrics.of_tenant(Some("acme"), std::iter::empty());
    let denial: Denial = serde_json::from_value(
        json!({"layer": "component", "request": "GET https://canary.example", "grant": "canary"}),
    )
    .unwrap();
    assert_eq!(denial.layer, Layer::Component);
    acme.count(&Event::Denied { id: "canary".into(), denial });
    acme.refused("quota_exceeded");
    let session = metrics.session();
    let text = metrics.text(3);
    let lines = [
        "toolcell_denials_total{tenant=\"acme\",layer=\"component\"} 1",
        "toolcell_refused_requests_total{tenant=\"acme\",code=\"quota_exceeded\"} 1",
        "toolcell_mcp_sessions_open 1",
        "toolcell_requests_running 3",
    ];
    has_lines(&text, &lines);
    assert!(!text.contains("canary"), "{text}");
    drop(session);
    assert!(metrics.text(0).contains("toolcell_mcp_sessions_open 0\n"));
}

#[test]
fn engine_usage_is_read_at_scrape_time() {
    let engine = toolcell::Engine::builder().cells(3).build().expect("an engine");
    let source = InUseSource(std::sync::Arc::new(move || vec![("pooled", engine.in_use())]));
    let metrics = Metrics::new(source);
    for _ in 0..2 {
        let lines = [
            r#"toolcell_cells_in_use{isolation="pooled"} 0"#,
            r#"toolcell_cells_max{isolation="pooled"} 3"#,
            r#"toolcell_calls_queued{isolation="pooled"} 0"#,
            r#"toolcell_connections_open{isolation="pooled"} 0"#,
            r#"toolcell_connections_total{isolation="pooled"} 0"#,
        ];
        has_lines(&metrics.text(0), &lines);
    }
}
