//! Intersects the rules of several layers, which gives the rules that all of them leave.
//!
//! A [`Rule`] is one rule of a kind of grant. [`remaining`] takes the granted rules of a kind and
//! the lists of the layers that narrow them. It returns the widest rules that lie within all of
//! them, in the notation of a configuration. Too many rules to compare give [`TOO_MANY`].
//!
//! The result is exact for this reason: of two hosts, two paths or two key prefixes, either one
//! contains the other, or they are disjoint. So the intersection of two rules is one rule.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use super::{Grants, InvalidRule};

/// Maximum number of rules to compare. An untrusted definition can name any number.
const MAX_RULES: usize = 1024;
/// Shown instead of more rules than that. No rule is shown, so that a part is not mistaken for all.
pub(super) const TOO_MANY: &str =
    "more rules than can be shown here: `toolcell explain` says whether one request is allowed";

/// A rule of one kind of grants.
pub(super) trait Rule:
    Clone + PartialEq + fmt::Display + FromStr<Err: Into<InvalidRule>>
{
    /// Returns the text of the rule without its access or its methods. Rules are sorted by it.
    fn place(&self) -> String;

    /// Returns the rule for everything that both rules allow; none if that is nothing.
    fn intersect(&self, other: &Self) -> Option<Self>;

    /// Returns true if the rule allows everything that the other one allows.
    fn includes(&self, other: &Self) -> bool {
        self.intersect(other).as_ref() == Some(other)
    }

    /// Returns rules that cannot be included in part, and that together allow the same.
    fn parts(&self) -> Vec<Self> {
        vec![self.clone()]
    }

    /// Returns the number of places that intersections of these rules can have.
    fn count<'a>(rules: impl Iterator<Item = &'a Self>) -> usize
    where
        Self: 'a,
    {
        rules.map(Self::place).collect::<BTreeSet<_>>().len()
    }

    /// Returns true if these grants allow everything that the rule allows, given that it is within
    /// a granted rule.
    fn is_granted(&self, _grants: &Grants) -> bool {
        true
    }

    /// Formats the remaining parts of the granted rules, sorted by place.
    fn shown(rules: Vec<Self>, _granted: &[Self]) -> Vec<String> {
        rules.iter().map(Self::to_string).collect()
    }
}

impl From<Infallible> for InvalidRule {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A name, such as that of a secret, is a rule that allows this name.
impl Rule for String {
    fn place(&self) -> String {
        self.clone()
    }

    fn intersect(&self, other: &Self) -> Option<Self> {
        (self == other).then(|| self.clone())
    }

    /// Only granted names can remain, and they are the operator's: there is no bound.
    fn count<'a>(_: impl Iterator<Item = &'a Self>) -> usize {
        0
    }
}

/// A name, or all names with a prefix: `notes` or `notes_*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) is_prefix: bool,
}

impl Pattern {
    /// Parses a pattern. `None`: a `*` stands before the end.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (text, is_prefix) =
            text.strip_suffix('*').map_or((text, false), |prefix| (prefix, true));
        (!text.contains('*')).then(|| Self { text: text.to_owned(), is_prefix })
    }

    pub(super) fn covers(&self, name: &str) -> bool {
        if self.is_prefix { name.starts_with(&self.text) } else { name == self.text }
    }

    pub(super) fn covers_prefix(&self, prefix: &str) -> bool {
        self.is_prefix && prefix.starts_with(&self.text)
    }

    pub(super) fn is_within(&self, other: &Self) -> bool {
        if self.is_prefix { other.covers_prefix(&self.text) } else { other.covers(&self.text) }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_prefix { "*" } else { "" })
    }
}

/// Returns the inner one of two extents; none if they are disjoint.
pub(super) fn inner<'a, T: ?Sized>(
    one: &'a T,
    other: &'a T,
    is_within: impl Fn(&T, &T) -> bool,
) -> Option<&'a T> {
    if is_within(one, other) { Some(one) } else { is_within(other, one).then_some(other) }
}

/// Returns the widest rules that are within the granted ones and within each layer. `granted` are
/// the rules of these grants.
pub(super) fn remaining<R: Rule>(grants: &Grants, granted: &[R], layers: &[Vec<R>]) -> Vec<String> {
    if R::count(granted.iter().chain(layers.iter().flatten())) > MAX_RULES {
        return vec![TOO_MANY.to_owned()];
    }
    let mut left = distinct(granted.iter().flat_map(R::parts));
    for layer in layers {
        let layer = distinct(layer.iter().cloned());
        let within = |rule: &R| -> Vec<R> {
            layer.iter().filter_map(|other| rule.intersect(other)).collect()
        };
        left = distinct(left.iter().flat_map(within));
    }
    // A rule for a path that no request can have does not include itself.
    left.retain(|rule| rule.includes(rule) && rule.is_granted(grants));
    let is_inner = |rule: &&R| left.iter().any(|other| other != *rule && other.includes(rule));
    R::shown(left.iter().filter(|rule| !is_inner(rule)).cloned().collect(), granted)
}

/// Returns the rules sorted by place, each once.
fn distinct<R: Rule>(rules: impl Iterator<Item = R>) -> Vec<R> {
    let keyed = rules.map(|rule| ((rule.place(), rule.to_string()), rule));
    keyed.collect::<BTreeMap<_, _>>().into_values().collect()
}
