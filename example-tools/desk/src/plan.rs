//! Sorts the steps of a plan so that each comes after the steps it depends on.
//!
//! In: steps with the ids of the steps they depend on. Out: the steps in an order that can be
//! carried out, or a cycle.
//! Invariants: the order is deterministic: it takes the first step in the author's order that is
//! ready; the work grows with steps times dependencies, and the schema bounds both.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One step of the plan.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// A short name that other steps can wait for, for example `build`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,40}$"))]
    pub(crate) id: String,
    /// What is done, in one sentence.
    #[schemars(length(min = 1, max = 300))]
    pub(crate) title: String,
    /// Ids of the steps that must be finished before this one starts.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub(crate) depends_on: Vec<String>,
}

/// One step with its position.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Ordered {
    /// The position, from 1.
    pub(crate) number: usize,
    pub(crate) id: String,
    pub(crate) title: String,
    /// Without duplicates, in the order of the sorted plan.
    pub(crate) depends_on: Vec<String>,
}

/// A sorted plan.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Plan {
    pub(crate) goal: String,
    pub(crate) steps: Vec<Ordered>,
    /// Ids grouped by the earliest time at which they can start: the steps of a group depend only
    /// on steps of earlier groups.
    pub(crate) waves: Vec<Vec<String>>,
}

/// Steps that wait for each other in a circle: each for the next, the last for the first.
#[derive(Debug, PartialEq)]
pub(crate) struct Cycle(pub(crate) Vec<String>);

/// Returns everything that is wrong with the steps, except for cycles.
pub(crate) fn problems(steps: &[Step]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let known: BTreeSet<&str> = steps.iter().map(|step| step.id.as_str()).collect();
    let mut found = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        if !seen.insert(step.id.as_str()) {
            found.push(format!(
                "steps[{index}].id: `{}` is already the id of another step",
                step.id
            ));
        }
        if step.title.trim().is_empty() {
            found.push(format!("steps[{index}].title: is blank"));
        }
        for missing in step.depends_on.iter().filter(|id| !known.contains(id.as_str())) {
            found.push(format!("steps[{index}].depends_on: there is no step `{missing}`"));
        }
    }
    found
}

/// Sorts the steps, which must have no [`problems`].
///
/// # Errors
/// A cycle of dependencies.
pub(crate) fn order(goal: &str, steps: &[Step]) -> Result<Plan, Cycle> {
    let mut waves: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ordered: Vec<Ordered> = Vec::new();
    while ordered.len() < steps.len() {
        let ready = steps.iter().find(|step| {
            !waves.contains_key(step.id.as_str())
                && step.depends_on.iter().all(|id| waves.contains_key(id.as_str()))
        });
        let Some(step) = ready else { return Err(cycle(steps, &waves)) };
        let wave = step
            .depends_on
            .iter()
            .filter_map(|id| waves.get(id.as_str()))
            .max()
            .map_or(0, |last| last + 1);
        waves.insert(&step.id, wave);
        let depends_on = ordered
            .iter()
            .map(|done| &done.id)
            .filter(|id| step.depends_on.contains(id))
            .cloned()
            .collect();
        let title = step.title.trim().to_owned();
        ordered.push(Ordered { number: ordered.len() + 1, id: step.id.clone(), title, depends_on });
    }
    let last = waves.values().max().map_or(0, |last| last + 1);
    let wave = |wave| {
        ordered
            .iter()
            .filter(|step| waves[step.id.as_str()] == wave)
            .map(|step| step.id.clone())
            .collect()
    };
    let waves = (0..last).map(wave).collect();
    Ok(Plan { goal: goal.trim().to_owned(), steps: ordered, waves })
}

/// Finds a cycle: each remaining step depends on another remaining step, so following the
/// dependencies must come back to a step.
fn cycle(steps: &[Step], done: &BTreeMap<&str, usize>) -> Cycle {
    let left = |id: &str| steps.iter().find(|step| step.id == id && !done.contains_key(id));
    let mut path: Vec<&str> = Vec::new();
    let mut next = steps.iter().find(|step| !done.contains_key(step.id.as_str()));
    while let Some(step) = next {
        if let Some(start) = path.iter().position(|id| *id == step.id) {
            path.drain(..start);
            break;
        }
        path.push(&step.id);
        next = step.depends_on.iter().find_map(|id| left(id));
    }
    Cycle(path.into_iter().map(str::to_owned).collect())
}

impl Cycle {
    /// Describes the cycle in words.
    pub(crate) fn explain(&self) -> String {
        let next = self.0.iter().cycle().skip(1);
        let links: Vec<String> = self
            .0
            .iter()
            .zip(next)
            .map(|(step, on)| format!("`{step}` waits for `{on}`"))
            .collect();
        format!("the plan goes in a circle: {}", links.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(list: &[(&str, &[&str])]) -> Vec<Step> {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let step = |(id, on): &(&str, &[&str])| Step {
            id: (*id).to_owned(),
            title: format!(" {id}! "),
            depends_on: owned(on),
        };
        list.iter().map(step).collect()
    }

    fn ids(plan: &Plan) -> Vec<&str> {
        plan.steps.iter().map(|step| step.id.as_str()).collect()
    }

    #[test]
    fn steps_follow_their_dependencies() {
        let plan = order(
            " Ship ",
            &steps(&[
                ("ship", &["test", "docs", "test"]),
                ("docs", &[]),
                ("test", &["build"]),
                ("build", &[]),
            ]),
        );
        let plan = plan.unwrap();
        assert_eq!(ids(&plan), ["docs", "build", "test", "ship"]);
        assert_eq!(plan.waves, [vec!["docs", "build"], vec!["test"], vec!["ship"]]);
        assert_eq!((plan.goal.as_str(), plan.steps[3].title.as_str()), ("Ship", "ship!"));
        assert_eq!(plan.steps[3].depends_on, ["docs", "test"]);
    }

    #[test]
    fn independent_steps_keep_their_order() {
        let plan = order("", &steps(&[("c", &[]), ("a", &[]), ("b", &["c"])])).unwrap();
        assert_eq!(ids(&plan), ["c", "a", "b"]);
    }

    #[test]
    fn cycle_error_names_its_steps() {
        let found =
            order("", &steps(&[("ok", &[]), ("x", &["a"]), ("a", &["ok", "b"]), ("b", &["a"])]))
                .unwrap_err();
        assert_eq!(found, Cycle(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(
            found.explain(),
            "the plan goes in a circle: `a` waits for `b`, `b` waits for `a`"
        );
        let own = order("", &steps(&[("a", &["a"])])).unwrap_err();
        assert_eq!(own.explain(), "the plan goes in a circle: `a` waits for `a`");
    }

    #[test]
    fn all_problems_are_listed() {
        let mut wrong = steps(&[("a", &["nope"]), ("a", &[])]);
        wrong[1].title = " ".to_owned();
        assert_eq!(
            problems(&wrong),
            [
                "steps[0].depends_on: there is no step `nope`",
                "steps[1].id: `a` is already the id of another step",
                "steps[1].title: is blank",
            ]
        );
    }
}
