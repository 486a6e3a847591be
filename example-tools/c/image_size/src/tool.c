/* The size of an image, from its first bytes: PNG, GIF, BMP, JPEG and WebP. */
#include <string.h>
#include <toolcell.h>

#include "base64.h"

/* Bytes that are looked at: a JPEG may have much before its size. */
#define LOOKED_AT ((size_t)1 << 20)

typedef struct {
    const char *format;
    uint32_t width, height;
} image;

typedef struct {
    const unsigned char *at;
    size_t length;
} bytes;

/* A number of `size` bytes, or 0 beyond the end. */
static uint32_t big(bytes from, size_t at, size_t size) {
    uint32_t number = 0;
    if (at > from.length || size > from.length - at) return 0;
    for (size_t i = 0; i < size; i++) number = number << 8 | from.at[at + i];
    return number;
}

static uint32_t little(bytes from, size_t at, size_t size) {
    uint32_t number = 0;
    if (at > from.length || size > from.length - at) return 0;
    for (size_t i = size; i > 0; i--) number = number << 8 | from.at[at + i - 1];
    return number;
}

static bool has(bytes from, size_t at, const char *text, size_t length) {
    return from.length >= at + length && memcmp(from.at + at, text, length) == 0;
}

/* The segments of a JPEG up to the one with the size. */
static image jpeg(bytes from) {
    size_t at = 2;
    while (at + 4 <= from.length && from.at[at] == 0xFF) {
        unsigned char kind = from.at[at + 1];
        if (kind == 0xFF || (kind >= 0xD0 && kind <= 0xD8) || kind == 0x01) {
            /* Padding, and segments without a length. */
            at += kind == 0xFF ? 1 : 2;
            continue;
        }
        bool is_frame = kind >= 0xC0 && kind <= 0xCF && kind != 0xC4 && kind != 0xC8 && kind != 0xCC;
        if (is_frame) return (image){"jpeg", big(from, at + 7, 2), big(from, at + 5, 2)};
        uint32_t length = big(from, at + 2, 2);
        if (length < 2) break;
        at += 2 + length;
    }
    return (image){"jpeg", 0, 0};
}

static image webp(bytes from) {
    if (has(from, 12, "VP8X", 4) && from.length >= 30) return (image){"webp", little(from, 24, 3) + 1, little(from, 27, 3) + 1};
    if (has(from, 12, "VP8L", 4) && from.length >= 25) {
        uint32_t bits = little(from, 21, 4);
        return (image){"webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1};
    }
    bool is_lossy = has(from, 12, "VP8 ", 4);
    return (image){"webp", is_lossy ? little(from, 26, 2) & 0x3FFF : 0, little(from, 28, 2) & 0x3FFF};
}

static image look_at(bytes from) {
    if (has(from, 0, "\x89PNG\r\n\x1a\n", 8)) return (image){"png", big(from, 16, 4), big(from, 20, 4)};
    if (has(from, 0, "GIF8", 4)) return (image){"gif", little(from, 6, 2), little(from, 8, 2)};
    if (has(from, 0, "\xFF\xD8", 2)) return jpeg(from);
    if (has(from, 0, "RIFF", 4) && has(from, 8, "WEBP", 4)) return webp(from);
    if (has(from, 0, "BM", 2)) {
        /* The height of a BMP is negative if its first line is the upper one. */
        int32_t height = (int32_t)little(from, 22, 4);
        return (image){"bmp", little(from, 18, 4), height < 0 ? -(uint32_t)height : (uint32_t)height};
    }
    return (image){0};
}

static tc_outcome image_size(tc_call *call) {
    tc_text text = tc_text_of(call, "data");
    const char *comma = memchr(text.data, ',', text.length);
    if (strncmp(text.data, "data:", 5) == 0 && comma != NULL) {
        text.length -= (size_t)(comma + 1 - text.data);
        text.data = comma + 1;
    }
    size_t capacity = text.length < LOOKED_AT ? text.length : LOOKED_AT;
    unsigned char *data = tc_alloc(capacity);
    bytes from = {data, 0};
    if (!base64_begin(text.data, text.length, data, capacity, &from.length)) return tc_fail("`data` is not base64");
    image found = look_at(from);
    if (found.format == NULL) return tc_fail("the data is not a PNG, GIF, BMP, JPEG or WebP image");
    if (found.width == 0 || found.height == 0) {
        return tc_fail(tc_format("the %s image ends before its size, or has none", found.format));
    }
    tc_value *result = tc_make_object();
    tc_set_string(result, "format", found.format);
    tc_set_integer(result, "width", found.width);
    tc_set_integer(result, "height", found.height);
    return tc_ok(result);
}

TOOLCELL_TOOL("image_size", "Tells the format, the width and the height of an image from its bytes.", TC_JSON({
    "type": "object",
    "properties": {
        "data": {"type": "string", "description": "The image in base64, or a `data:` URL. Its beginning is enough."}
    },
    "required": ["data"],
    "additionalProperties": false
}), image_size, .read_only = true, .idempotent = true, .output = TC_JSON({
    "type": "object",
    "properties": {"format": {"type": "string"}, "width": {"type": "integer"}, "height": {"type": "integer"}},
    "required": ["format", "width", "height"]
}))
