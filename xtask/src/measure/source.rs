//! Reads Rust as tokens, and separates code from tests.

use std::iter::Peekable;
use std::str::FromStr as _;

use anyhow::{Result, anyhow};
use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A Rust file as tokens: those of every build, and those of tests alone.
pub(super) struct Source {
    pub(super) text: String,
    pub(super) code: TokenStream,
    pub(super) tests: TokenStream,
}

impl Source {
    /// Parses the text of a file and separates the tests.
    pub(super) fn of(text: String) -> Result<Self> {
        let tokens = TokenStream::from_str(&text).map_err(|error| anyhow!("{error}"))?;
        let (mut code, mut tests) = (TokenStream::new(), TokenStream::new());
        part(tokens, &mut code, &mut tests);
        Ok(Self { text, code, tests })
    }
}

/// Moves each item, member or statement behind `#[cfg(test)]` to `tests`, and all else to `code`.
fn part(tokens: TokenStream, code: &mut TokenStream, tests: &mut TokenStream) {
    let mut tokens = tokens.into_iter().peekable();
    // The attributes of the next item; `tested` is true if `cfg(test)` is one of them.
    let (mut attributes, mut tested) = (Vec::new(), false);
    while let Some(token) = tokens.next() {
        let bracket = |next: &TokenTree| opens(next, Delimiter::Bracket);
        if is(&token, '#') && tokens.peek().is_some_and(bracket) {
            let content = tokens.next();
            tested |= content
                .as_ref()
                .is_some_and(|group| group.to_string().replace(' ', "") == "[cfg(test)]");
            attributes.push(token);
            attributes.extend(content);
            continue;
        }
        if tested {
            tests.extend(attributes.drain(..));
            rest_of_item(token, &mut tokens, tests);
            tested = false;
            continue;
        }
        code.extend(attributes.drain(..));
        if let TokenTree::Group(group) = token {
            let mut inner = TokenStream::new();
            part(group.stream(), &mut inner, tests);
            let mut parted = Group::new(group.delimiter(), inner);
            parted.set_span(group.span());
            code.extend([TokenTree::Group(parted)]);
        } else {
            code.extend([token]);
        }
    }
    code.extend(attributes);
}

/// Moves tokens up to the block, semicolon or comma that ends an item, a statement or a member.
fn rest_of_item(first: TokenTree, rest: &mut Peekable<IntoIter>, moved: &mut TokenStream) {
    let (mut angles, mut before, mut next) = (0, ' ', Some(first));
    while let Some(token) = next {
        let mark = if let TokenTree::Punct(mark) = &token { mark.as_char() } else { ' ' };
        angles += i32::from(mark == '<') - i32::from(mark == '>' && !['-', '='].contains(&before));
        before = mark;
        let block = opens(&token, Delimiter::Brace);
        moved.extend([token]);
        if block {
            moved.extend(rest.next_if(|next| is(next, ';') || is(next, ',')));
        }
        if block || mark == ';' || (mark == ',' && angles == 0) {
            return;
        }
        next = rest.next();
    }
}

/// Returns true if a token is a group in these brackets.
pub(super) fn opens(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

/// Returns true if a token is this punctuation mark.
pub(super) fn is(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

#[test]
fn cfg_test_code_is_separated_from_the_rest() {
    let text = "#[cfg(test)] mod a; struct B { c: D<E, F>, /** G */ #[cfg(test)] h: D<E, F>, i: J } \
        #[cfg(test)] #[k] fn l<M, N>() -> O<M, N> { p } const Q: R = S { #[cfg(test)] t: 1 };";
    let source = Source::of(text.into()).unwrap();
    let code: TokenStream = "struct B { c: D<E, F>, i: J } const Q: R = S { };".parse().unwrap();
    assert_eq!(source.code.to_string(), code.to_string());
    assert!(
        ["mod a", "h :", "fn l", "p", "t : 1"]
            .iter()
            .all(|text| source.tests.to_string().contains(text))
    );
}
