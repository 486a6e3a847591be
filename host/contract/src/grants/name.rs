//! The kinds of grants whose rules are names: environment variables, and secrets in their two uses.
//!
//! A secret of `secrets` is put into requests by the host. The value of a secret of `reveal` can be
//! read by the tool.

use super::kind::{GrantKind, Row, TABLE, lists};

pub(super) static ENVIRONMENT: Row = Row {
    words: &["variable", "variables", "environment", "env"],
    brackets: TABLE,
    example: "variable=LANG=C",
    imports: &["wasi:cli/environment@"],
    rules: Some(lists!(environment, |grants, _| grants.environment.keys().cloned().collect())),
    ..Row::list(GrantKind::Environment, "environment")
};

pub(super) static SECRETS: Row = Row {
    need: "secret",
    words: &["secret", "secrets"],
    brackets: TABLE,
    example: "secret=token=https://api.example.com",
    imports: &["toolcell:tool/secrets@", "toolcell:tool/http@"],
    rules: Some(lists!(secrets, |grants, _| grants.secrets.keys().cloned().collect())),
    ..Row::list(GrantKind::Secrets, "secrets")
};

pub(super) static REVEAL: Row = Row {
    words: &["reveal"],
    example: "reveal=token",
    imports: &["toolcell:tool/reveal@"],
    rules: Some(lists!(reveal, |grants, _| grants.reveal.iter().cloned().collect())),
    ..Row::list(GrantKind::Reveal, "reveal")
};
