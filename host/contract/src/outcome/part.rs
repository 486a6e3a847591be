//! Content beside the value of a successful answer: texts, images, sounds, resources, links.
//!
//! A handler (the code of a tool) adds [`Part`]s to its output, and the formats of model providers
//! pass them on, for example as images. Bytes are written as base64 in JSON. The size of a part
//! counts against the limit of a result. The host follows no link, and does not compare a media
//! type with the bytes.

use serde::{Deserialize, Serialize};

/// A piece of content beside the value.
///
/// # Shape
/// As JSON: `{"type": "text" | "image" | "audio" | "resource" | "resource_link", …}` with the
/// fields by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A resource that is included.
    Resource(Resource),
    /// A link to a resource that is not included.
    ResourceLink {
        /// The URI of the resource.
        uri: String,
        /// Its short name.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// A description of the resource.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its length in bytes, if the host knows it.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
}

impl Part {
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image(media) | Self::Audio(media) => media.mime_type.len() + media.data.len(),
            Self::Resource(Resource { uri, mime_type, content }) => {
                uri.len() + mime_type.as_ref().map_or(0, String::len) + content.as_bytes().len()
            }
            Self::ResourceLink { uri, name, description, mime_type, .. } => {
                let beside =
                    [name, description, mime_type].map(|text| text.as_ref().map_or(0, String::len));
                uri.len() + beside.iter().sum::<usize>()
            }
        }
    }
}

/// A resource with its content, for example a file that a tool has made and that a client can keep
/// under its URI.
///
/// # Shape
/// As JSON: `{"uri", "mime_type"?, "text"}` or `{"uri", "mime_type"?, "data"}`, the bytes in base64
/// with padding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// The URI of the resource. The host does not read it.
    pub uri: String,
    /// Its media type, `text/csv` for instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The content.
    #[serde(flatten)]
    pub content: ResourceContent,
}

/// The content of a [`Resource`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResourceContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Bytes.
    Bytes {
        /// The bytes.
        #[serde(with = "base64_text")]
        data: Vec<u8>,
    },
}

impl ResourceContent {
    /// Returns the bytes of the content; a text is in UTF-8.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text { text } => text.as_bytes(),
            Self::Bytes { data } => data,
        }
    }
}

/// Bytes with a media type.
///
/// # Shape
/// As JSON: `{"mime_type", "data"}`, the bytes in base64 with padding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Media type, `image/png` for instance.
    pub mime_type: String,
    /// The bytes.
    #[serde(with = "base64_text")]
    pub data: Vec<u8>,
}

/// Bytes as standard base64 with padding.
mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        STANDARD.encode(bytes).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
