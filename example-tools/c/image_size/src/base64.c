#include "base64.h"

static int digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

bool base64_begin(const char *text, size_t length, unsigned char *bytes, size_t capacity, size_t *count) {
    unsigned bits = 0;
    int has = 0;
    *count = 0;
    for (size_t at = 0; at < length && *count < capacity && text[at] != '='; at++) {
        if (text[at] == '\n' || text[at] == '\r' || text[at] == ' ') continue;
        int next = digit(text[at]);
        if (next < 0) return false;
        bits = bits << 6 | (unsigned)next;
        has += 6;
        if (has >= 8) {
            has -= 8;
            bytes[(*count)++] = (unsigned char)(bits >> has);
        }
    }
    return true;
}
