//! Measures a value at each depth, and computes from it the steps that a check takes.
//!
//! `work` knows the [`Cost`] of a schema at each depth, the number of visits to the busiest place
//! there. Before a value is checked, [`Measure::of`] counts its nodes and its bytes of text at each
//! depth. [`Measure::steps`] multiplies the two and sums up. The check is refused if the sum is
//! over the budget, so an expensive check never starts. The measure is linear in the value, and
//! does not recurse.

use std::fmt;
use std::ops::Add;

use serde_json::Value;

use crate::json::Json;

/// Bytes of text that count as one step: a check reads many bytes in a nanosecond.
const STEP_BYTES: u64 = 128;

/// The operations of a schema at one place.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    /// Visits of the place and its own text.
    pub(super) looks: u64,
    /// Visits of everything inside of the place.
    pub(super) whole: u64,
    /// Patterns that the text of the place is matched with.
    pub(super) patterns: u64,
}

impl Cost {
    /// One look.
    pub(super) const LOOK: Self = Self { looks: 1, whole: 0, patterns: 0 };

    /// Returns the maximum of each count.
    pub(super) fn max(self, other: Self) -> Self {
        self.each(other, u64::max)
    }

    fn each(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            looks: combine(self.looks, other.looks),
            whole: combine(self.whole, other.whole),
            patterns: combine(self.patterns, other.patterns),
        }
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }
}

/// The part of a value at one depth.
#[derive(Debug, Clone, Copy, Default)]
struct Layer {
    nodes: u64,
    /// Bytes of strings and of member names.
    text: u64,
}

impl Layer {
    fn steps(self) -> u64 {
        self.nodes + self.text / STEP_BYTES
    }
}

/// The size of a value at each depth.
#[derive(Debug)]
pub(super) struct Measure(Vec<Layer>);

impl Measure {
    pub(super) fn of(value: &Value) -> Self {
        // Arguments of one level fit without growing.
        let mut layers = Vec::with_capacity(2);
        layers.extend([Layer::default()]);
        let mut open = vec![(value, 0)];
        while let Some((value, depth)) = open.pop() {
            layers[depth].nodes += 1;
            let inside = (depth + 1).min(Json::MAX_DEPTH);
            if layers.len() <= inside && (value.is_array() || value.is_object()) {
                layers.push(Layer::default());
            }
            match value {
                Value::String(text) => layers[depth].text += text.len() as u64,
                Value::Array(items) => open.extend(items.iter().map(|item| (item, inside))),
                Value::Object(members) => {
                    // A name belongs to its object, and is a place of its own for `propertyNames`.
                    let names = members.keys().map(|name| name.len() as u64).sum::<u64>();
                    layers[depth].text += names;
                    layers[inside].text += names;
                    open.extend(members.values().map(|member| (member, inside)));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        Self(layers)
    }

    /// Returns the steps of a check with this cost at the busiest place of each depth.
    pub(super) fn steps(&self, costs: &[Cost]) -> u64 {
        self.sum(costs, |cost| (cost.looks, cost.whole))
    }

    /// Returns the steps of collecting every fault: each visit may produce a fault with a copy of
    /// the value that it is about.
    pub(super) fn copied(&self, costs: &[Cost]) -> u64 {
        self.sum(costs, |cost| (0, cost.looks.saturating_add(cost.whole)))
    }

    /// Sums over all depths: the first number times the steps at a depth, plus the second number
    /// times the steps at that depth and all below.
    fn sum(&self, costs: &[Cost], of: impl Fn(&Cost) -> (u64, u64)) -> u64 {
        let (mut below, mut sum) = (0_u64, 0_u64);
        for (layer, cost) in self.0.iter().zip(costs).rev() {
            below += layer.steps();
            let (looks, whole) = of(cost);
            sum = sum
                .saturating_add(looks.saturating_mul(layer.steps()))
                .saturating_add(whole.saturating_mul(below));
        }
        sum
    }

    /// Returns the number of bytes that are matched with patterns.
    pub(super) fn matched(&self, costs: &[Cost]) -> u64 {
        let layers = self.0.iter().zip(costs);
        layers.fold(0, |sum, (layer, cost)| {
            sum.saturating_add(cost.patterns.saturating_mul(layer.text))
        })
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.0.iter().map(|layer| layer.nodes).sum::<u64>();
        write!(f, "{nodes} nodes in {} levels", self.0.len() - 1)
    }
}
