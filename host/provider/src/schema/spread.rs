//! Merges alternatives at the root of a schema (`anyOf`, `oneOf`) into one object that accepts them
//! all.
//!
//! APIs that accept only a plain object at the root need it. [`Rewrite::object`] calls
//! `merge_alternatives`, which gives the object every member of any alternative and requires the
//! members that all of them require. The alternatives themselves go into the description, with a
//! note. If only one alternative accepts objects, it is merged as it is; if none does, the tool is
//! refused.

use serde_json::{Value, json};
use toolcell_contract::json::inside;

use super::{Keywords, Open, Rewrite, takes_objects};
use crate::Converted;

impl Rewrite<'_, '_> {
    /// Merges alternatives into the object that contains them: it gets every member of any
    /// alternative, and requires the members that all of them require. The alternatives themselves
    /// go into the description. If only one of them accepts objects, that one is merged as a
    /// requirement, and the references that were followed in it stay in `open`.
    pub(super) fn merge_alternatives(
        &mut self,
        object: &mut Keywords,
        keyword: &str,
        branches: Value,
        open: &mut Open,
    ) -> Converted<()> {
        let at = inside(self.start, keyword);
        let (mut fitting, mut followed) = (Vec::new(), Open::new());
        for (index, branch) in branches.as_array().into_iter().flatten().enumerate() {
            let mut open = open.clone();
            let branch = self.flatten(branch, &format!("{at}/{index}"), &mut open)?;
            if takes_objects(&branch) {
                fitting.push(branch);
                followed = open;
            }
        }
        if fitting.len() < 2 {
            let Some(only) = fitting.pop() else {
                return Err(self.changes.refusal(&at, "no object can fit any alternative"));
            };
            *open = followed;
            self.merge(object, only, &at);
            return Ok(());
        }
        if let Value::Object(own) = object.entry("properties").or_insert_with(|| json!({})) {
            for (name, forms) in members(&fitting) {
                own.entry(name).or_insert(forms);
            }
        }
        let required = required_by_all(&fitting);
        if !required.is_empty() {
            self.merge(
                object,
                Keywords::from_iter([("required".to_owned(), required.into())]),
                &at,
            );
        }
        let reason = "the API does not allow alternatives at the top";
        self.describe_keyword(object, keyword, &branches, &at, reason);
        Ok(())
    }
}

/// Returns every member of every alternative, with all its forms.
fn members(branches: &[Keywords]) -> Keywords {
    let mut members = Keywords::new();
    for (name, schema) in
        branches.iter().filter_map(|branch| branch.get("properties")?.as_object()).flatten()
    {
        let forms = members.entry(name.as_str()).or_insert_with(|| json!([]));
        if let Value::Array(forms) = forms
            && !forms.contains(schema)
        {
            forms.push(schema.clone());
        }
    }
    for forms in members.values_mut() {
        *forms = match forms.as_array().map(Vec::as_slice) {
            Some([only]) => only.clone(),
            _ => json!({"anyOf": forms}),
        };
    }
    members
}

fn required_by_all(branches: &[Keywords]) -> Vec<Value> {
    let lists = branches.iter().map(|branch| branch.get("required").and_then(Value::as_array));
    let mut lists = lists.map(|list| list.cloned().unwrap_or_default());
    let mut required = lists.next().unwrap_or_default();
    lists.for_each(|other| required.retain(|name| other.contains(name)));
    required
}
