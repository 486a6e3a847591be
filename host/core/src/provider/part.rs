//! Content beside a result: what an API takes as it is, and words for the rest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Note;
use crate::message::Message;
use crate::outcome::{Media, Part, Resource, ResourceContent};

/// The content and, in words, every part that does not travel `apart`.
pub(super) fn text(message: &Message, apart: impl Fn(&Part) -> bool, notes: &mut Vec<Note>) -> String {
    let mut pieces = vec![message.content.clone()];
    for (index, part) in message.parts.iter().enumerate().filter(|(_, part)| !apart(part)) {
        if let Some(mime_type) = left_out(part) {
            notes.push(Note {
                tool: message.name.clone(),
                pointer: format!("/parts/{index}"),
                change: format!("{mime_type} left out; the text mentions it"),
                reason: "this API does not take it in the result of a tool".into(),
            });
        }
        pieces.push(words(part));
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces.join("\n\n")
}

/// The media type of a part that has no words.
fn left_out(part: &Part) -> Option<&str> {
    match part {
        Part::Image(media) | Part::Audio(media) => Some(&media.mime_type),
        Part::Resource(Resource { mime_type, content: ResourceContent::Bytes { .. }, .. }) => {
            Some(mime_type.as_deref().unwrap_or("application/octet-stream"))
        }
        Part::Text { .. } | Part::Resource(_) | Part::ResourceLink { .. } => None,
    }
}

fn words(part: &Part) -> String {
    let unshown = |kind: &str, bytes: usize, mime_type: &str| {
        format!("[{kind} of {bytes} bytes ({mime_type}) that cannot be shown here]")
    };
    let omitted = |kind: &str, media: &Media| unshown(kind, media.data.len(), &media.mime_type);
    match part {
        Part::Text { text } => text.clone(),
        Part::Image(media) => omitted("image", media),
        Part::Audio(media) => omitted("audio", media),
        Part::Resource(Resource { uri, content: ResourceContent::Text { text }, .. }) => {
            format!("[resource {uri}]\n{text}")
        }
        Part::Resource(Resource { uri, content: ResourceContent::Bytes { data }, .. }) => {
            unshown(&format!("resource {uri}"), data.len(), left_out(part).unwrap_or_default())
        }
        Part::ResourceLink { uri, name, description, mime_type, .. } => {
            let label = [name, mime_type, description].into_iter().flatten();
            let label = label.map(|text| format!("; {text}")).collect::<String>();
            format!("[resource {uri}{label}]")
        }
    }
}

/// An image of one of these types.
pub(super) fn image<'a>(part: &'a Part, types: &[&str]) -> Option<&'a Media> {
    match part {
        Part::Image(media) => Some(media).filter(|media| types.contains(&media.mime_type.as_str())),
        Part::Text { .. } | Part::Audio(_) | Part::Resource(_) | Part::ResourceLink { .. } => None,
    }
}

pub(super) fn base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}
