//! Compile errors for misuse say what to write instead: `ui/NAME.rs` gives `ui/NAME.stderr`.
//! After a change of a message: `TRYBUILD=overwrite cargo test --workspace --test guest misuse`.

#[test]
fn misuse_is_a_compile_error() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
