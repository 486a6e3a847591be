//! Counts lines of code, tokens, and doc comments by their beginnings.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use proc_macro2::{Span, TokenStream, TokenTree};

use super::Row;
use super::repository::Repository;

/// Words that no doc comment may begin with.
const OPENINGS: [&str; 7] = ["What ", "Whether ", "How ", "Why ", "Who ", "Whose ", "The same "];

/// The counts for some code.
#[derive(Default)]
struct Lines {
    /// Lines with at least one token that is not of a comment.
    code: usize,
    /// Tokens without those of comments; a pair of brackets is two.
    tokens: usize,
    /// Doc comments.
    docs: usize,
    /// Doc comments that begin with one of `OPENINGS`.
    indirect: usize,
    /// Width of each line of code.
    widths: Vec<usize>,
}

impl Lines {
    fn of(text: &str, tokens: &TokenStream) -> Self {
        let mut counted = Self::default();
        let mut lines = BTreeSet::new();
        counted.take(tokens, &mut lines);
        counted.code = lines.len();
        counted.widths = text
            .lines()
            .enumerate()
            .filter(|(at, _)| lines.contains(&(at + 1)))
            .map(|(_, line)| line.chars().count())
            .collect();
        counted
    }

    /// Percentage of doc comments that begin with one of `OPENINGS`.
    fn indirect(&self) -> usize {
        self.indirect * 100 / self.docs.max(1)
    }

    /// Width that nine of ten lines do not exceed.
    fn width(&self) -> usize {
        let mut widths = self.widths.clone();
        widths.sort_unstable();
        widths.get(widths.len() * 9 / 10).copied().unwrap_or_default()
    }

    fn take(&mut self, tokens: &TokenStream, lines: &mut BTreeSet<usize>) {
        let tokens: Vec<_> = tokens.clone().into_iter().collect();
        // The kind and the last line of the preceding comment.
        let (mut at, mut before) = (0, (0, 0));
        while let Some(token) = tokens.get(at) {
            if let Some((length, text)) = doc(&tokens[at..]) {
                let span = token.span();
                if before != (length, span.start().line.saturating_sub(1)) {
                    self.docs += 1;
                    self.indirect +=
                        usize::from(OPENINGS.iter().any(|opening| text.starts_with(opening)));
                }
                (at, before) = (at + length, (length, span.end().line));
                continue;
            }
            at += 1;
            let mut cover = |span: Span| lines.extend(span.start().line..=span.end().line);
            if let TokenTree::Group(group) = token {
                let ends = [group.span_open(), group.span_close()];
                self.tokens += 2;
                ends.into_iter().for_each(cover);
                self.take(&group.stream(), lines);
            } else {
                self.tokens += 1;
                cover(token.span());
            }
        }
    }
}

impl AddAssign for Lines {
    fn add_assign(&mut self, more: Self) {
        self.code += more.code;
        self.tokens += more.tokens;
        self.docs += more.docs;
        self.indirect += more.indirect;
        self.widths.extend(more.widths);
    }
}

/// Reads a line of a doc comment from the start of `tokens`: the number of its tokens, and its
/// text.
///
/// `/// a` has the tokens of `#[doc = " a"]`, but all their spans begin where the comment does.
fn doc(tokens: &[TokenTree]) -> Option<(usize, String)> {
    let inner =
        usize::from(matches!(tokens.get(1), Some(TokenTree::Punct(mark)) if mark.as_char() == '!'));
    let (TokenTree::Punct(mark), TokenTree::Group(group)) =
        (tokens.first()?, tokens.get(1 + inner)?)
    else {
        return None;
    };
    let parts: Vec<_> = group.stream().into_iter().collect();
    let text = parts.get(2).filter(|_| parts[0].to_string() == "doc" && mark.as_char() == '#')?;
    let is_comment = mark.span().start() == text.span().start();
    is_comment.then(|| (2 + inner, text.to_string().trim_start_matches(['"', ' ']).to_owned()))
}

/// Returns the rows of lines, tokens, doc comments and widths.
pub(super) fn rows(repository: &Repository) -> Vec<Row> {
    let (mut hosts, mut tests) = (BTreeMap::<String, Lines>::new(), Lines::default());
    for (file, source) in &repository.sources {
        let mut folders = file.split('/').map(str::to_owned);
        let (first, second) =
            (folders.next().unwrap_or_default(), folders.next().unwrap_or_default());
        let is_library = ["host", "guest-sdk"].contains(&first.as_str());
        if !is_library && first != "tests" {
            continue;
        }
        tests += Lines::of(&source.text, &source.tests);
        let code = Lines::of(&source.text, &source.code);
        if !is_library || (!repository.is_compiled(file) && !file.ends_with("/build.rs")) {
            tests += code;
        } else if first == "host" {
            *hosts.entry(second).or_default() += code;
        }
    }
    let mut all = Lines::default();
    let each = |count: fn(&Lines) -> usize| {
        let counts = hosts.iter().map(|(name, lines)| (name.clone(), count(lines)));
        counts.collect::<Vec<_>>()
    };
    let (code, tokens) = (each(|lines| lines.code), each(|lines| lines.tokens));
    let (indirect, widths) = (each(Lines::indirect), each(Lines::width));
    hosts.into_values().for_each(|host| all += host);
    vec![
        Row::new("host code, lines", all.code, "-14 % of what a width of 100 gives").parts(code),
        Row::new("host code, tokens", all.tokens, "").parts(tokens),
        Row::new("test code, lines", tests.code, "-23 % of what a width of 100 gives"),
        Row::new("test code, tokens", tests.tokens, ""),
        Row::new("doc comments that begin as a question, %", all.indirect(), "<= 2")
            .parts(indirect),
        Row::new("width of host code, 90th percentile", all.width(), "<= 85").parts(widths),
    ]
}

#[test]
fn comments_are_not_counted_as_code() {
    let text = "//! What a file has.\n\n// Why.\n/// How it is.\n/// Who.\n#[doc(hidden)]\nfn a() {\n\n    b(\"c\nd\") // E\n}\n/// Adds.\nstruct F;\n";
    let counted = Lines::of(text, &text.parse().unwrap());
    assert_eq!((counted.code, counted.tokens), (6, 20));
    assert_eq!((counted.docs, counted.indirect()), (3, 66));
    assert_eq!(counted.width(), 14);
}
