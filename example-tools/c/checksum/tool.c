/* Checksums of a text or of bytes: CRC-32 (zlib, PNG), CRC-32C (iSCSI), Adler-32 (zlib) and FNV-1a. */
#include <string.h>
#include <toolcell.h>

static uint32_t crc(uint32_t polynomial, const unsigned char *data, size_t length) {
    uint32_t table[256], sum = UINT32_MAX;
    for (uint32_t byte = 0; byte < 256; byte++) {
        table[byte] = byte;
        for (int bit = 0; bit < 8; bit++) table[byte] = table[byte] >> 1 ^ (table[byte] & 1 ? polynomial : 0);
    }
    for (size_t at = 0; at < length; at++) sum = sum >> 8 ^ table[(sum ^ data[at]) & 0xFF];
    return ~sum;
}

static uint32_t adler32(const unsigned char *data, size_t length) {
    uint32_t a = 1, b = 0;
    for (size_t at = 0; at < length; at++) {
        a = (a + data[at]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static uint64_t fnv1a(const unsigned char *data, size_t length) {
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t at = 0; at < length; at++) sum = (sum ^ data[at]) * 0x100000001b3;
    return sum;
}

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The bytes of a text in hexadecimal digits. False: it is none. */
static bool from_hex(tc_text hex, unsigned char *bytes) {
    for (size_t at = 0; at < hex.length; at += 2) {
        int high = digit(hex.data[at]), low = digit(hex.data[at + 1]);
        if (high < 0 || low < 0) return false;
        bytes[at / 2] = (unsigned char)(high << 4 | low);
    }
    return hex.length % 2 == 0;
}

static tc_outcome checksum(tc_call *call) {
    if (tc_has(call, "text") == tc_has(call, "hex")) return tc_fail("give either `text` or `hex`");
    tc_text text = tc_has(call, "text") ? tc_text_of(call, "text") : tc_text_of(call, "hex");
    const unsigned char *data = (const unsigned char *)text.data;
    size_t length = text.length;
    if (tc_has(call, "hex")) {
        unsigned char *bytes = tc_alloc(length / 2 + 1);
        if (!from_hex(text, bytes)) return tc_fail("`hex` is not an even number of hexadecimal digits");
        data = bytes;
        length /= 2;
    }
    const char *algorithm = tc_string_or(call, "algorithm", "crc32");
    uint64_t sum = 0;
    int digits = 8;
    if (strcmp(algorithm, "crc32") == 0) sum = crc(0xEDB88320, data, length);
    if (strcmp(algorithm, "crc32c") == 0) sum = crc(0x82F63B78, data, length);
    if (strcmp(algorithm, "adler32") == 0) sum = adler32(data, length);
    if (strcmp(algorithm, "fnv1a64") == 0) {
        sum = fnv1a(data, length);
        digits = 16;
    }
    tc_value *result = tc_make_object();
    tc_set_string(result, "algorithm", algorithm);
    tc_set_integer(result, "bytes", (int64_t)length);
    tc_set_string(result, "checksum", tc_format("%0*llx", digits, (unsigned long long)sum));
    return tc_ok(result);
}

TOOLCELL_TOOL("checksum", "Computes a checksum of a text, or of bytes in hexadecimal digits.", TC_JSON({
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "A text, of whose UTF-8 bytes the checksum is computed."},
        "hex": {"type": "string", "description": "Bytes in hexadecimal digits, instead of a text."},
        "algorithm": {"enum": ["crc32", "crc32c", "adler32", "fnv1a64"], "default": "crc32"}
    },
    "additionalProperties": false
}), checksum, .read_only = true, .idempotent = true, .accepts_nul = true)
