//! Converts the content beside a tool's result: finds the images that an API accepts, describes the
//! rest in text.
//!
//! The formats call [`text`] or [`text_and_images`] for each message. A part that an API does not
//! accept is described by a sentence such as "[image of 512 bytes (image/tiff) that cannot be shown
//! here]" in the text of the result, with a note if bytes are lost. An image or sound of 0 bytes is
//! described too, because an API would refuse the whole request for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolcell_contract::message::Message;
use toolcell_contract::outcome::{Media, Part, Resource, ResourceContent};

use super::Note;

/// Image types of a result. Source: the guides to images of OpenAI and to vision of Anthropic.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// The media type of unknown bytes (RFC 2046).
const UNKNOWN_BYTES: &str = "application/octet-stream";

/// Returns the content, and the text of every part that is not sent separately (`apart`).
pub(super) fn text(
    message: &Message,
    apart: impl Fn(&Part) -> bool,
    notes: &mut Vec<Note>,
) -> String {
    let mut pieces = vec![message.content.clone()];
    let others = message.parts.iter().enumerate().filter(|(_, part)| !apart(part));
    pieces.extend(others.map(|(index, part)| described(message, index, part, notes)));
    pieces.retain(|piece| !piece.is_empty());
    pieces.join("\n\n")
}

/// Describes a part in text, with a note if its bytes are left out.
pub(super) fn described(
    message: &Message,
    index: usize,
    part: &Part,
    notes: &mut Vec<Note>,
) -> String {
    if let Some(mime_type) = omitted_type(part) {
        let reason = if is_empty(part) {
            "it has no bytes"
        } else {
            "this API does not take it in the result of a tool"
        };
        let change = format!("{mime_type} left out; the text mentions it");
        notes.push(Note::new(&message.name, &format!("/parts/{index}"), &change, reason));
    }
    placeholder_text(part)
}

/// Returns true if a part is an image or audio of 0 bytes, for which an API refuses the whole
/// request.
pub(super) fn is_empty(part: &Part) -> bool {
    matches!(part, Part::Image(media) | Part::Audio(media) if media.data.is_empty())
}

/// Returns the media type, or that of unknown bytes if the tool wrote an empty one.
pub(super) fn media_type(written: &str) -> &str {
    if written.trim().is_empty() { UNKNOWN_BYTES } else { written }
}

/// Returns the media type of a part that cannot be sent as text.
fn omitted_type(part: &Part) -> Option<&str> {
    match part {
        Part::Image(media) | Part::Audio(media) => Some(media_type(&media.mime_type)),
        Part::Resource(Resource { mime_type, content: ResourceContent::Bytes { .. }, .. }) => {
            Some(media_type(mime_type.as_deref().unwrap_or_default()))
        }
        Part::Text { .. } | Part::Resource(_) | Part::ResourceLink { .. } => None,
    }
}

fn placeholder_text(part: &Part) -> String {
    let unshown = |kind: &str, bytes: usize, mime_type: &str| {
        format!("[{kind} of {bytes} bytes ({mime_type}) that cannot be shown here]")
    };
    let omitted =
        |kind: &str, media: &Media| unshown(kind, media.data.len(), media_type(&media.mime_type));
    match part {
        Part::Text { text } => text.clone(),
        Part::Image(media) => omitted("image", media),
        Part::Audio(media) => omitted("audio", media),
        Part::Resource(Resource { uri, content: ResourceContent::Text { text }, .. }) => {
            format!("[resource {uri}]\n{text}")
        }
        Part::Resource(Resource { uri, content: ResourceContent::Bytes { data }, .. }) => {
            unshown(&format!("resource {uri}"), data.len(), omitted_type(part).unwrap_or_default())
        }
        Part::ResourceLink { uri, name, description, mime_type, .. } => {
            let mime_type = mime_type.as_deref().map(media_type);
            let label = [name.as_deref(), mime_type, description.as_deref()].into_iter().flatten();
            let label = label.map(|text| format!("; {text}")).collect::<String>();
            format!("[resource {uri}{label}]")
        }
    }
}

/// Returns the content as text or, with an image that can be sent, as a list of blocks: the text,
/// in a block of this type, and the images.
pub(super) fn text_and_images(
    message: &Message,
    text_type: &str,
    block: impl Fn(&Media) -> Value,
    notes: &mut Vec<Note>,
) -> Value {
    let said = text(message, |part| image(part).is_some(), notes);
    let images: Vec<_> = message.parts.iter().filter_map(image).map(block).collect();
    if images.is_empty() {
        return said.into();
    }
    // A text block must not be empty.
    let said = (!said.is_empty()).then(|| json!({"type": text_type, "text": said}));
    said.into_iter().chain(images).collect()
}

/// Returns the image of a part, if it has one of [`IMAGES`] and is not empty.
fn image(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) => Some(media)
            .filter(|media| !is_empty(part) && IMAGES.contains(&media.mime_type.as_str())),
        Part::Text { .. } | Part::Audio(_) | Part::Resource(_) | Part::ResourceLink { .. } => None,
    }
}

pub(super) fn base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}
