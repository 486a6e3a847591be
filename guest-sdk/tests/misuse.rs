//! Misuse is a compile error that says what to write instead: `ui/NAME.rs` gives `ui/NAME.stderr`.
//! After a change of words: `TRYBUILD=overwrite cargo test --workspace --test misuse`.

#[test]
fn misuse() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
