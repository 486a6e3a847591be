//! Recognises access tokens of well-known services by their fixed prefixes.
//!
//! The outbound scan calls [`kinds`] with the text of a request that a tool sends. It returns the
//! kinds of tokens that the text seems to contain, such as "a GitHub token", each once, and never
//! the token itself. The scan reports them to observers; the request is still sent, because the
//! token may be the user's own.
//! A pattern is a prefix, the characters that may follow it, and their minimum number. The search
//! is linear in the bytes.
//! Source: the services' documentation of their token formats.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// A token pattern: its kind, its prefix, the characters that follow it, and their minimum number.
struct TokenPattern(&'static str, &'static str, fn(&u8) -> bool, usize);

const PATTERNS: [TokenPattern; 20] = [
    TokenPattern("an AWS access key", "AKIA", is_upper, 16),
    TokenPattern("an AWS access key", "ASIA", is_upper, 16),
    TokenPattern("a GitHub token", "ghp_", is_word, 36),
    TokenPattern("a GitHub token", "gho_", is_word, 36),
    TokenPattern("a GitHub token", "ghu_", is_word, 36),
    TokenPattern("a GitHub token", "ghs_", is_word, 36),
    TokenPattern("a GitHub token", "ghr_", is_word, 36),
    TokenPattern("a GitHub token", "github_pat_", is_word, 22),
    TokenPattern("a GitLab token", "glpat-", is_dashed, 20),
    TokenPattern("a Google API key", "AIza", is_dashed, 35),
    TokenPattern("a Slack token", "xoxa-", is_dashed, 10),
    TokenPattern("a Slack token", "xoxb-", is_dashed, 10),
    TokenPattern("a Slack token", "xoxp-", is_dashed, 10),
    TokenPattern("a Slack token", "xoxr-", is_dashed, 10),
    TokenPattern("a Slack token", "xoxs-", is_dashed, 10),
    TokenPattern("a Stripe key", "sk_live_", is_word, 16),
    TokenPattern("a Stripe key", "rk_live_", is_word, 16),
    TokenPattern("an API key of a model's provider", "sk-ant-", is_dashed, 20),
    TokenPattern("an API key of a model's provider", "sk-proj-", is_dashed, 20),
    TokenPattern("a private key", "PRIVATE KEY-----", |_| true, 0),
];

fn is_upper(byte: &u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

fn is_dashed(byte: &u8) -> bool {
    is_word(byte) || *byte == b'-'
}

/// Returns the kinds of secrets that these bytes seem to contain, each once.
pub(crate) fn kinds(bytes: &[u8]) -> Vec<&'static str> {
    static BEGINNINGS: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::new(PATTERNS.iter().map(|pattern| pattern.1)).ok());
    let mut kinds = Vec::new();
    for found in BEGINNINGS.iter().flat_map(|beginnings| beginnings.find_iter(bytes)) {
        let TokenPattern(kind, _, continues, at_least) = &PATTERNS[found.pattern().as_usize()];
        let rest = bytes[found.end()..].iter().take(*at_least);
        let is_long = rest.take_while(|byte| continues(byte)).count() == *at_least;
        if is_long && !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_tokens_are_recognised_by_pattern() {
        // Written in two pieces, so that secret scanners do not flag this file.
        let token = |beginning: &str, rest: &str| format!("a={beginning}{rest}&b");
        let [aws, stripe] = [token("AKIA", &"A".repeat(16)), token("sk_live_", &"0".repeat(24))];
        for (text, expected) in [
            (token("AKIA", "0123456789ABCDEF"), &["an AWS access key"][..]),
            (token("AKIA", "0123456789ABCDE"), &[]),
            (token("AKIA", "0123456789abcdef"), &[]),
            (token("ghp_", &"a1".repeat(18)), &["a GitHub token"]),
            (token("ghp_", "short"), &[]),
            (token("xoxb-", "123456789012-abc"), &["a Slack token"]),
            (token("-----BEGIN RSA ", "PRIVATE KEY-----\nMII"), &["a private key"]),
            (token("-----BEGIN ", "PUBLIC KEY-----"), &[]),
            (format!("ghp_ AKIA{}", token("ghs_", &"x".repeat(40)).repeat(2)), &["a GitHub token"]),
            (format!("{aws} {stripe}"), &["an AWS access key", "a Stripe key"]),
            (String::new(), &[]),
        ] {
            assert_eq!(kinds(text.as_bytes()), expected, "{text}");
        }
    }
}
