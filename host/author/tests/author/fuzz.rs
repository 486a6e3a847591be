//! Fuzzing of tools.

use toolcell::Engine;
use toolcell_author::build;
use toolcell_author::cases::{Cases, FuzzOptions, FuzzReport};
use toolcell_test_guests::rows;

use crate::case_run::project;

/// Builds the module of a table and calls each of its tools this many times.
fn fuzz(table: &str, calls: usize) -> Vec<FuzzReport> {
    let module = rows::<(&str, &str)>("author/fuzz", table);
    let place = project(&module);
    let built = build(place.path(), None).expect("it builds");
    let engine = Engine::builder().cache(env!("CARGO_TARGET_TMPDIR"));
    let cases = Cases::read(engine, &built.component, &[]).expect("a component");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(cases.fuzz(&FuzzOptions::new(calls), || ())).expect("it is called")
}

#[test]
fn secrets_have_values_during_fuzzing() {
    let reports = fuzz("secrets_have_values_during_fuzzing", 3);
    assert_eq!((reports[0].calls, &reports[0].failures[..]), (3, &[][..]));
}

#[test]
fn fuzzing_finds_the_smallest_failing_arguments() {
    let reports = fuzz("fuzzing_finds_the_smallest_failing_arguments", 60);
    let [report] = &reports[..] else { panic!("one tool: {reports:?}") };
    let [failure] = &report.failures[..] else { panic!("one failure: {reports:?}") };
    assert_eq!((&*report.tool, report.calls), ("picky", 60));
    assert_eq!(
        (&*failure.reason, failure.arguments.to_string()),
        ("handler_raised", r#"{"list":[0,0,0]}"#.to_owned())
    );
    assert!(failure.message.contains("too many"), "{failure:?}");
}
