//! Writes a value in each of the encodings: for the guest that disguises it and for the test that
//! searches for it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// Returns the value in this encoding; the value itself if the encoding is unknown.
pub(crate) fn disguised(value: &str, disguise: &str) -> String {
    let each = |write: fn(u8) -> String| value.bytes().map(write).collect::<String>();
    match disguise {
        "upper" => value.to_uppercase(),
        "base64" => STANDARD.encode(value),
        "base64_shifted" => STANDARD.encode(format!("x{value}")),
        "base64_url" => URL_SAFE_NO_PAD.encode(value),
        "hex" => each(|byte| format!("{byte:02x}")),
        "hex_upper" => each(|byte| format!("{byte:02X}")),
        "percent" => each(|byte| format!("%{byte:02x}")),
        "component" => each(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).into()
            } else {
                format!("%{byte:02X}")
            }
        }),
        "escaped" => each(|byte| format!("\\u{byte:04x}")),
        "reversed" => value.chars().rev().collect(),
        "halves" => format!("{} {}", &value[..value.len() / 2], &value[value.len() / 2..]),
        _ => value.to_owned(),
    }
}
