//! Turns parts of a tool's answer into embedded resources: content with a URI of its own.
//!
//! WIT's type `part` is closed and has no such case. So the extension `resources` of an answer
//! names the parts that are resources, by index, with URI and media type. `translate` calls
//! [`apply`] with the extension and the parts, and it replaces these parts. An entry that names a
//! missing part, a link, or a part twice is a fault of the answer.
//! In this way a component of any version runs on a host of any version: a host that does not know
//! the extension shows the parts themselves.

use serde::Deserialize;
use toolcell_contract::json::Json;
use toolcell_contract::outcome::{Part, Resource, ResourceContent, tool_error::ReturnRule};

/// The name of the extension.
pub(super) const NAME: &str = "resources";

/// The extension's entry for one part. Members of later versions are ignored.
#[derive(Deserialize)]
struct ResourceEntry {
    /// The index of the part.
    part: usize,
    uri: String,
    /// `None`: the media type of the part itself, which text does not have.
    mime_type: Option<String>,
}

/// Converts the parts that the extension names to resources.
///
/// # Errors
/// [`ReturnRule::NotJson`] if the extension is not a list of such objects, or names a part that
/// does not exist, is a link, or was named before.
pub(super) fn apply(resources: &Json, parts: &mut [Part]) -> Result<(), ReturnRule> {
    let rule = |detail: String| ReturnRule::NotJson {
        field: format!("extensions.{NAME}"),
        detail: format!("not valid: {detail}"),
    };
    let named: Vec<ResourceEntry> =
        serde_json::from_str(resources.as_str()).map_err(|error| rule(error.to_string()))?;
    for ResourceEntry { part: index, uri, mime_type } in named {
        let part = parts.get_mut(index).ok_or_else(|| rule(format!("there is no part {index}")))?;
        let (own_type, content) = match part {
            Part::Text { text } => (None, ResourceContent::Text { text: std::mem::take(text) }),
            Part::Image(media) | Part::Audio(media) => {
                let data = std::mem::take(&mut media.data);
                (Some(std::mem::take(&mut media.mime_type)), ResourceContent::Bytes { data })
            }
            Part::Resource(_) => return Err(rule(format!("part {index} is named twice"))),
            Part::ResourceLink { .. } => {
                return Err(rule(format!("part {index} is a link, and has no content")));
            }
        };
        *part = Part::Resource(Resource { uri, mime_type: mime_type.or(own_type), content });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolcell_contract::outcome::Media;
    use toolcell_test_guests::rows;

    use super::*;

    fn parts() -> Vec<Part> {
        let media = Media { mime_type: "application/pdf".into(), data: vec![1, 2] };
        let link = json!({"type": "resource_link", "uri": "x:y"});
        let link = serde_json::from_value(link).expect("a link");
        vec![Part::Text { text: "a,b".into() }, Part::Image(media), link]
    }

    #[test]
    fn named_parts_become_resources() {
        let mut parts = parts();
        let named = json!([{"part": 1, "uri": "file:///b.pdf", "later": 1}, {"part": 0, "uri": "file:///a.csv", "mime_type": "text/csv"}]);
        apply(&named.into(), &mut parts).expect("resources");
        let expected = json!([
            {"type": "resource", "uri": "file:///a.csv", "mime_type": "text/csv", "text": "a,b"},
            {"type": "resource", "uri": "file:///b.pdf", "mime_type": "application/pdf", "data": "AQI="},
            {"type": "resource_link", "uri": "x:y"},
        ]);
        assert_eq!(json!(parts), expected);
        let read: Vec<Part> = serde_json::from_value(expected).expect("the same form");
        assert_eq!(read, parts);
    }

    #[test]
    fn bad_resources_extension_is_an_invalid_return() {
        for (named, detail) in rows::<(Value, &str)>("engine/cell/translate/resources", "bad") {
            let rule = apply(&Value::into(named.clone()), &mut parts()).expect_err("an error");
            let ReturnRule::NotJson { field, detail: found } = rule else { panic!("{rule:?}") };
            assert!(field == "extensions.resources" && found.contains(detail), "{named}: {found}");
        }
    }
}
