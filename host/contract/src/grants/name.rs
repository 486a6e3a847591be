//! The kinds of grants whose rules are names: environment variables, and secrets in their two uses.
//!
//! A secret of `secrets` is put into requests by the host. The value of a secret of `reveal` can be
//! read by the tool.

use super::kind::{BlockedOn, Row, TABLE, lists};

pub(super) static ENVIRONMENT: Row = Row {
    words: &["variable", "variables", "environment", "env"],
    brackets: TABLE,
    example: "variable=LANG=C",
    requests: &["environment NAME"],
    imports: &["wasi:cli/environment@"],
    rules: Some(lists!(environment, |grants, _| grants.environment.keys().cloned().collect())),
    ..Row::list("environment", |grants| !grants.environment.is_empty())
};

pub(super) static SECRETS: Row = Row {
    need: "secret",
    words: &["secret", "secrets"],
    brackets: TABLE,
    example: "secret=token=https://api.example.com",
    requests: &["secret NAME"],
    imports: &["toolcell:tool/secrets@", "toolcell:tool/http@"],
    wait: Some(BlockedOn::Secret),
    rules: Some(lists!(secrets, |grants, _| grants.secrets.keys().cloned().collect())),
    ..Row::list("secrets", |grants| !grants.secrets.is_empty())
};

pub(super) static REVEAL: Row = Row {
    words: &["reveal"],
    example: "reveal=token",
    requests: &["reveal NAME"],
    imports: &["toolcell:tool/reveal@"],
    wait: Some(BlockedOn::Secret),
    rules: Some(lists!(reveal, |grants, _| grants.reveal.iter().cloned().collect())),
    ..Row::list("reveal", |grants| !grants.reveal.is_empty())
};
