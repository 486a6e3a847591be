//! Tools of the public MCP conformance suite that a component can implement: texts, media,
//! resources, an error, progress.

use toolcell_guest::{Failure, Output, Part, progress, tool, tools};

/// The signature of a PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn of(part: Part) -> Output {
    Output::new(()).part(part)
}

/// The fixture of a text.
#[tool]
fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// The fixture of an image.
#[tool]
fn test_image_content() -> Output {
    of(Part::image("image/png", PNG))
}

/// The fixture of a sound.
#[tool]
fn test_audio_content() -> Output {
    of(Part::audio("audio/wav", *b"RIFF\x24\0\0\0WAVEfmt "))
}

/// The fixture of an embedded resource.
#[tool]
fn test_embedded_resource() -> Output {
    of(Part::resource(
        "test://embedded-resource",
        "text/plain",
        "This is an embedded resource content.",
    ))
}

/// The fixture of several kinds of content.
#[tool]
fn test_multiple_content_types() -> Output {
    of(Part::text("Multiple content types test:")).part(Part::image("image/png", PNG)).part(
        Part::resource(
            "test://mixed-content-resource",
            "application/json",
            r#"{"test":"data","value":123}"#,
        ),
    )
}

/// The fixture of an error.
#[tool]
fn test_error_handling() -> Result<Output, Failure> {
    Err(Failure::new("This tool intentionally returns an error for testing"))
}

/// The fixture of progress.
#[tool]
fn test_tool_with_progress() -> &'static str {
    for done in [0, 50, 100] {
        progress::report(done, Some(100), None);
    }
    "done"
}

tools![
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_progress
];
