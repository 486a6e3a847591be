//! Content beside a result: what an API takes as it is, and words for the rest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Note;
use crate::message::Message;
use crate::outcome::{Media, Part};

/// The content and, in words, every part that does not travel `apart`.
pub(super) fn text(message: &Message, apart: impl Fn(&Part) -> bool, notes: &mut Vec<Note>) -> String {
    let mut pieces = vec![message.content.clone()];
    for (index, part) in message.parts.iter().enumerate().filter(|(_, part)| !apart(part)) {
        if let Part::Image(media) | Part::Audio(media) = part {
            notes.push(Note {
                tool: message.name.clone(),
                pointer: format!("/parts/{index}"),
                change: format!("{} left out, and said in the text", media.mime_type),
                reason: "this API does not take it in the result of a tool".into(),
            });
        }
        pieces.push(words(part));
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces.join("\n\n")
}

fn words(part: &Part) -> String {
    let omitted = |kind: &str, media: &Media| {
        format!("[{kind} of {} bytes ({}) that cannot be shown here]", media.data.len(), media.mime_type)
    };
    match part {
        Part::Text { text } => text.clone(),
        Part::Image(media) => omitted("image", media),
        Part::Audio(media) => omitted("audio", media),
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
        Part::Text { .. } | Part::Audio(_) | Part::ResourceLink { .. } => None,
    }
}

pub(super) fn base64(media: &Media) -> String {
    STANDARD.encode(&media.data)
}
