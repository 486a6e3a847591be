//! Text encodings, digests, HMAC and decompression for JavaScript, by means of well-known crates.

use std::io::{ErrorKind, Read};

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hmac::{Hmac, KeyInit, Mac};
use rquickjs::{Ctx, IntoJs as _, Result, TypedArray, Value};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::outcome::bytes;

/// Bytes of a decoded body. A small body can decompress to a thousand times its size.
const MAX_DECODED: u64 = 32 << 20;

/// Returns the name of the encoding with this label, or an empty string if it is unknown.
pub(crate) fn encoding_of(label: String) -> String {
    Encoding::for_label_no_replacement(label.as_bytes())
        .map(|known| known.name().to_lowercase())
        .unwrap_or_default()
}

/// Returns the number of bytes at the end that are the start of an incomplete character.
pub(crate) fn open_bytes(label: String, from: Value<'_>) -> Result<usize> {
    let bytes = bytes(from)?;
    let Some(encoding) = Encoding::for_label(label.as_bytes()) else { return Ok(0) };
    if encoding == UTF_16LE || encoding == UTF_16BE {
        let odd = bytes.len() % 2;
        let whole = &bytes[..bytes.len() - odd];
        let high = whole
            .last_chunk::<2>()
            .map(|unit| if encoding == UTF_16LE { unit[1] } else { unit[0] });
        return Ok(odd + if high.is_some_and(|high| high & 0xfc == 0xd8) { 2 } else { 0 });
    }
    if encoding != UTF_8 {
        return Ok(0);
    }
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    Ok(match std::str::from_utf8(tail.get(boundary(tail)..).unwrap_or_default()) {
        Err(error) if error.error_len().is_none() => {
            tail.len() - boundary(tail) - error.valid_up_to()
        }
        _ => 0,
    })
}

/// Index at which the last character of these bytes begins.
fn boundary(tail: &[u8]) -> usize {
    (0..tail.len()).rev().find(|at| tail[*at] & 0xc0 != 0x80).unwrap_or(0)
}

/// Decodes bytes to text. Returns none if `is_fatal` and the bytes are not valid.
pub(crate) fn decode_as<'js>(
    ctx: Ctx<'js>,
    label: String,
    from: Value<'js>,
    is_fatal: bool,
    keeps_mark: bool,
) -> Result<Value<'js>> {
    let bytes = bytes(from)?;
    let encoding = Encoding::for_label(label.as_bytes()).unwrap_or(UTF_8);
    let text = match (is_fatal, keeps_mark) {
        (true, true) => encoding.decode_without_bom_handling_and_without_replacement(&bytes),
        (true, false) => {
            let (rest, _) = without_mark(encoding, &bytes);
            encoding.decode_without_bom_handling_and_without_replacement(rest)
        }
        (false, true) => Some(encoding.decode_without_bom_handling(&bytes).0),
        (false, false) => Some(encoding.decode_with_bom_removal(&bytes).0),
    };
    text.map(String::from).into_js(&ctx)
}

fn without_mark<'a>(encoding: &'static Encoding, bytes: &'a [u8]) -> (&'a [u8], bool) {
    match Encoding::for_bom(bytes) {
        Some((found, length)) if found == encoding => (&bytes[length..], true),
        _ => (bytes, false),
    }
}

/// Returns the digest of bytes.
pub(crate) fn digest<'js>(
    ctx: Ctx<'js>,
    name: String,
    from: Value<'js>,
) -> Result<TypedArray<'js, u8>> {
    let bytes = bytes(from)?;
    let digest = match name.as_str() {
        "SHA-1" => Sha1::digest(&bytes).to_vec(),
        "SHA-384" => Sha384::digest(&bytes).to_vec(),
        "SHA-512" => Sha512::digest(&bytes).to_vec(),
        _ => Sha256::digest(&bytes).to_vec(),
    };
    TypedArray::new(ctx, digest)
}

/// Returns the HMAC of bytes with a key.
pub(crate) fn hmac<'js>(
    ctx: Ctx<'js>,
    name: String,
    key: Value<'js>,
    from: Value<'js>,
) -> Result<TypedArray<'js, u8>> {
    let (key, bytes) = (bytes(key)?, bytes(from)?);
    macro_rules! mac {
        ($digest:ty) => {
            Hmac::<$digest>::new_from_slice(&key)
                .map(|mac| mac.chain_update(&bytes).finalize().into_bytes().to_vec())
        };
    }
    let code = match name.as_str() {
        "SHA-1" => mac!(Sha1),
        "SHA-384" => mac!(Sha384),
        "SHA-512" => mac!(Sha512),
        _ => mac!(Sha256),
    };
    // HMAC accepts keys of any length, so this does not fail.
    TypedArray::new(ctx, code.unwrap_or_default())
}

/// Removes one content coding from a body. Returns the bytes, or a text that describes the error.
pub(crate) fn inflate<'js>(ctx: Ctx<'js>, coding: String, from: Value<'js>) -> Result<Value<'js>> {
    let bytes = bytes(from)?;
    let read = match coding.as_str() {
        "gzip" => whole(MultiGzDecoder::new(&*bytes)),
        "br" => whole(brotli_decompressor::Decompressor::new(&*bytes, 4096)),
        // Some servers send `deflate` without the zlib header.
        _ if bytes.first().is_some_and(|first| first & 15 == 8) => whole(ZlibDecoder::new(&*bytes)),
        _ => whole(DeflateDecoder::new(&*bytes)),
    };
    match read {
        Ok(body) => TypedArray::new(ctx.clone(), body)?.into_js(&ctx),
        Err(problem) => problem.into_js(&ctx),
    }
}

fn whole(from: impl Read) -> std::result::Result<Vec<u8>, String> {
    let mut body = Vec::new();
    let read = from.take(MAX_DECODED + 1).read_to_end(&mut body);
    read.map_err(|error| match error.kind() {
        ErrorKind::OutOfMemory => {
            format!("decoded it has more than the {} bytes that fit into the memory", body.len())
        }
        _ => error.to_string(),
    })?;
    if body.len() as u64 > MAX_DECODED {
        return Err(format!("decoded it has more than {MAX_DECODED} bytes"));
    }
    Ok(body)
}

/// Returns true if a text has 16 digits in a row. The engine's regular expressions take a thousand
/// times as long.
pub(crate) fn has_long_number(text: &str) -> bool {
    let mut digits = 0;
    text.bytes().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        digits == 16
    })
}
