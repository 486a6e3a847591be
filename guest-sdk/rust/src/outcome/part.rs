//! Content in addition to the value of a result.

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// The media type, `image/png` for instance.
        mime_type: String,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A sound.
    Audio {
        /// The media type, `audio/wav` for instance.
        mime_type: String,
        /// The bytes.
        data: Vec<u8>,
    },
    /// An embedded resource: content with its own URI, under which a client can store it.
    Resource {
        /// The URI, `file:///report.csv` for instance.
        uri: String,
        /// The media type, `text/csv` for instance.
        mime_type: String,
        /// The content.
        content: Content,
    },
    /// A link to a resource that is not included.
    ResourceLink(Link),
}

/// The content of a [`Part::Resource`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl Part {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An image of this media type.
    pub fn image(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::Image { mime_type: mime_type.into(), data: data.into() }
    }

    /// A sound of this media type.
    pub fn audio(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::Audio { mime_type: mime_type.into(), data: data.into() }
    }

    /// An embedded resource with this URI and media type, as text or bytes.
    ///
    /// A host that does not support embedded resources shows the content without its URI.
    pub fn resource(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        content: impl Into<Content>,
    ) -> Self {
        Self::Resource { uri: uri.into(), mime_type: mime_type.into(), content: content.into() }
    }

    /// A link: a URI, or a [`Link`] with a name, a description or a media type.
    pub fn resource_link(link: impl Into<Link>) -> Self {
        Self::ResourceLink(link.into())
    }
}

/// A link to a resource that is not included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub(crate) uri: String,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime_type: Option<String>,
}

impl Link {
    /// A link to this URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, description: None, mime_type: None }
    }

    /// Adds a name to show.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds the media type of the resource.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

impl From<&str> for Link {
    fn from(uri: &str) -> Self {
        Self::new(uri)
    }
}

impl From<String> for Link {
    fn from(uri: String) -> Self {
        Self::new(uri)
    }
}
