/*
 * The SDK for tools in C: what `toolcell.h` declares.
 *
 * In: the bindings that wit-bindgen makes of the world `toolbox-with-grants`. Out: the exports of a tool.
 * Invariants: memory comes from an arena and is never freed, because a cell ends with its call; no function here calls
 * itself; what goes to the host is UTF-8, and JSON where it has to be.
 */
#include "toolcell.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "toolbox_with_grants.h"

#undef abort

/* Levels of arrays and objects that the contract allows. */
#define MAX_DEPTH 127
/* Bytes of a block of the arena. */
#define BLOCK ((size_t)64 << 10)
/* Alignment of all memory. */
#define ALIGNMENT ((size_t)16)
/* Members of an object from which on they are found by a hash table. */
#define INDEXED 16
/* Keys of one page of the store. */
#define PAGE 1000

typedef toolbox_with_grants_string_t abi_string;
typedef exports_toolcell_tool_tool_definition_t abi_definition;
typedef exports_toolcell_tool_tool_tool_call_t abi_call;
typedef exports_toolcell_tool_tool_context_t abi_context;
typedef exports_toolcell_tool_tool_outcome_t abi_outcome;

/* ---- Raising ---- */

static void write_all(const char *data, size_t length) {
    while (length > 0) {
        ssize_t written = write(STDERR_FILENO, data, length);
        if (written <= 0) return;
        data += written;
        length -= (size_t)written;
    }
}

/* The host shows what is on standard error as the message of `handler_raised`. */
static _Noreturn void raise_in_parts(const char *message, const char *function, const char *file, int line) {
    char number[16];
    size_t at = sizeof number;
    fflush(NULL);
    write_all(message, strlen(message));
    if (file != NULL) {
        for (unsigned rest = line > 0 ? (unsigned)line : 0; at == sizeof number || rest > 0; rest /= 10) {
            number[--at] = (char)('0' + rest % 10);
        }
        write_all("\n    at ", 8);
        write_all(function, strlen(function));
        write_all(" (", 2);
        write_all(file, strlen(file));
        write_all(":", 1);
        write_all(number + at, sizeof number - at);
        write_all(")", 1);
    }
    write_all("\n", 1);
    __builtin_trap();
}

void tc_raise_at(const char *message, const tc_place *place) {
    raise_in_parts(message, place->function, place->file, place->line);
}

void tc_assert_fail(const char *expression, const char *file, int line, const char *function) {
    raise_in_parts(tc_format("assertion failed: %s", expression), function, file, line);
}

/* ---- Memory ---- */

static char *arena;
static size_t arena_left;

static _Noreturn void out_of_memory(void) {
    raise_in_parts("out of memory", NULL, NULL, 0);
}

/* Memory with anything in it. */
static void *reserve(size_t size) {
    if (size > SIZE_MAX - ALIGNMENT) out_of_memory();
    size = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (size > arena_left) {
        size_t fresh = size > BLOCK / 4 ? size : BLOCK;
        char *block = malloc(fresh);
        if (block == NULL) out_of_memory();
        if (fresh == size) return block;
        arena = block;
        arena_left = fresh;
    }
    char *memory = arena;
    arena += size;
    arena_left -= size;
    return memory;
}

void *tc_alloc(size_t size) {
    return memset(reserve(size), 0, size);
}

/* Memory for so many more items, with what is there now. */
static void *grown(const void *items, size_t count, size_t capacity, size_t size) {
    if (capacity > SIZE_MAX / size) out_of_memory();
    void *more = reserve(capacity * size);
    if (count > 0) memcpy(more, items, count * size);
    return more;
}

/* What the host calls for the memory of arguments and answers. */
__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *memory, size_t old, size_t align, size_t size) {
    (void)align;
    if (size == 0) return (void *)align;
    return size <= old ? memory : grown(memory, old, size, 1);
}

static tc_text copied(const char *data, size_t length) {
    if (length == SIZE_MAX) out_of_memory();
    char *copy = reserve(length + 1);
    if (length > 0) memcpy(copy, data, length);
    copy[length] = 0;
    return (tc_text){copy, length};
}

char *tc_format(const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = tc_alloc(length < 0 ? 1 : (size_t)length + 1);
    if (length > 0) vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

double tc_random(void) {
    uint64_t bits = 0;
    if (getentropy(&bits, sizeof bits) != 0) raise_in_parts("there are no random numbers", NULL, NULL, 0);
    return (double)(bits >> 11) * 0x1p-53;
}

/* ---- UTF-8 ---- */

/* Bytes of the character that begins here, or 0 if it is not UTF-8. */
static size_t utf8_length(const unsigned char *at, size_t left) {
    unsigned char first = at[0];
    if (first < 0x80) return 1;
    size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length > left) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80) return 0;
    }
    /* Too long a form, half of a surrogate pair, or beyond the last character. */
    if ((first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F)) return 0;
    if ((first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] > 0x8F)) return 0;
    return length;
}

static bool is_utf8(const char *data, size_t length) {
    for (size_t at = 0, step; at < length; at += step) {
        step = utf8_length((const unsigned char *)data + at, length - at);
        if (step == 0) return false;
    }
    return true;
}

/* A text for the host: U+FFFD takes the place of bytes that are not UTF-8. */
static abi_string words(const char *data, size_t length) {
    if (is_utf8(data, length)) return (abi_string){(uint8_t *)data, length};
    if (length > SIZE_MAX / 3) out_of_memory();
    char *copy = tc_alloc(length * 3);
    size_t end = 0;
    for (size_t at = 0; at < length;) {
        size_t step = utf8_length((const unsigned char *)data + at, length - at);
        memcpy(copy + end, step ? data + at : "\xEF\xBF\xBD", step ? step : 3);
        end += step ? step : 3;
        at += step ? step : 1;
    }
    return (abi_string){(uint8_t *)copy, end};
}

static abi_string string(const char *text) {
    return text == NULL ? (abi_string){(uint8_t *)"", 0} : words(text, strlen(text));
}

static toolbox_with_grants_option_string_t optional(const char *text) {
    return (toolbox_with_grants_option_string_t){text != NULL, string(text)};
}

static tc_text text_of(abi_string from) {
    return copied((const char *)from.ptr, from.len);
}

/* ---- Values ---- */

struct tc_value {
    tc_type type;
    bool is_integer;
    union {
        bool boolean;
        struct {
            double number;
            int64_t integer;
        };
        tc_text text;
        /* An array or an object. `names` are those of an object, `table` holds indices of members plus one. */
        struct {
            uint32_t count, capacity, table_size;
            const tc_value **items;
            tc_text *names;
            uint32_t *table;
        };
    };
};

static tc_value *make(tc_type type) {
    tc_value *value = tc_alloc(sizeof *value);
    value->type = type;
    return value;
}

tc_value *tc_make_null(void) {
    return make(TC_NULL);
}

tc_value *tc_make_bool(bool boolean) {
    tc_value *value = make(TC_BOOL);
    value->boolean = boolean;
    return value;
}

tc_value *tc_make_number(double number) {
    tc_value *value = make(TC_NUMBER);
    value->number = number;
    return value;
}

tc_value *tc_make_integer(int64_t integer) {
    tc_value *value = make(TC_NUMBER);
    value->is_integer = true;
    value->integer = integer;
    value->number = (double)integer;
    return value;
}

tc_value *tc_make_text(const char *data, size_t length) {
    tc_value *value = make(TC_STRING);
    value->text = copied(data, length);
    return value;
}

tc_value *tc_make_string(const char *text) {
    return text == NULL ? tc_make_null() : tc_make_text(text, strlen(text));
}

tc_value *tc_make_array(void) {
    return make(TC_ARRAY);
}

tc_value *tc_make_object(void) {
    return make(TC_OBJECT);
}

static uint32_t hash(const char *data, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t at = 0; at < length; at++) hash = (hash ^ (unsigned char)data[at]) * 16777619u;
    return hash;
}

static bool is_named(const tc_value *object, uint32_t index, const char *name, size_t length) {
    return object->names[index].length == length && memcmp(object->names[index].data, name, length) == 0;
}

/* The index of a member, or the number of members. */
static uint32_t find(const tc_value *object, const char *name, size_t length) {
    if (object->table == NULL) {
        for (uint32_t index = 0; index < object->count; index++) {
            if (is_named(object, index, name, length)) return index;
        }
        return object->count;
    }
    uint32_t mask = object->table_size - 1;
    for (uint32_t at = hash(name, length) & mask; object->table[at] != 0; at = (at + 1) & mask) {
        if (is_named(object, object->table[at] - 1, name, length)) return object->table[at] - 1;
    }
    return object->count;
}

/* Makes the table anew, for twice as many members as there is room for. */
static void index_members(tc_value *object) {
    object->table_size = object->capacity * 4;
    object->table = tc_alloc(object->table_size * sizeof *object->table);
    for (uint32_t index = 0; index < object->count; index++) {
        uint32_t at = hash(object->names[index].data, object->names[index].length);
        while (object->table[at & (object->table_size - 1)] != 0) at++;
        object->table[at & (object->table_size - 1)] = index + 1;
    }
}

static void append(tc_value *to, const tc_value *item, const char *name, size_t length) {
    if (to->count == to->capacity) {
        if (to->capacity >= UINT32_MAX / 64) out_of_memory();
        to->capacity = to->capacity == 0 ? 8 : to->capacity * 2;
        to->items = grown(to->items, to->count, to->capacity, sizeof *to->items);
        if (name != NULL) {
            to->names = grown(to->names, to->count, to->capacity, sizeof *to->names);
            if (to->capacity > INDEXED) index_members(to);
        }
    }
    if (name != NULL) {
        to->names[to->count] = copied(name, length);
        if (to->table != NULL) {
            uint32_t at = hash(name, length);
            while (to->table[at & (to->table_size - 1)] != 0) at++;
            to->table[at & (to->table_size - 1)] = to->count + 1;
        }
    }
    to->items[to->count++] = item;
}

static void set(tc_value *object, const char *name, size_t length, const tc_value *value) {
    uint32_t index = find(object, name, length);
    if (index < object->count) {
        object->items[index] = value;
    } else {
        append(object, value, name, length);
    }
}

void tc_set_at(tc_value *object, const char *name, const tc_value *value, const tc_place *place) {
    if (tc_type_of(object) != TC_OBJECT) tc_raise_at("a member is set of something that is not an object", place);
    if (name == NULL) tc_raise_at("a member is set that has no name", place);
    set(object, name, strlen(name), value == NULL ? tc_make_null() : value);
}

void tc_add_at(tc_value *array, const tc_value *value, const tc_place *place) {
    if (tc_type_of(array) != TC_ARRAY) tc_raise_at("an item is added to something that is not an array", place);
    append(array, value == NULL ? tc_make_null() : value, NULL, 0);
}

/* ---- Reading values ---- */

static const char *const TYPES[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};

const tc_value *tc_same(const tc_value *value) {
    return value;
}

tc_type tc_type_of(const tc_value *value) {
    return value == NULL ? TC_NULL : value->type;
}

size_t tc_length(const tc_value *value) {
    switch (tc_type_of(value)) {
    case TC_STRING: return value->text.length;
    case TC_ARRAY:
    case TC_OBJECT: return value->count;
    default: return 0;
    }
}

static bool is_container(const tc_value *value) {
    return tc_type_of(value) == TC_ARRAY || tc_type_of(value) == TC_OBJECT;
}

const tc_value *tc_at(const tc_value *value, size_t index) {
    return is_container(value) && index < value->count ? value->items[index] : NULL;
}

const char *tc_name_at(const tc_value *object, size_t index) {
    return tc_type_of(object) == TC_OBJECT && index < object->count ? object->names[index].data : NULL;
}

const tc_value *tc_member(const tc_value *object, const char *name) {
    if (tc_type_of(object) != TC_OBJECT || name == NULL) return NULL;
    uint32_t index = find(object, name, strlen(name));
    return index < object->count ? object->items[index] : NULL;
}

bool tc_has_member(const tc_value *object, const char *name) {
    return tc_type_of(tc_member(object, name)) != TC_NULL;
}

static const tc_value *expected(const tc_value *value, const char *name, tc_type type, const tc_place *place) {
    if (value != NULL && value->type == type) return value;
    const char *what = value == NULL ? "missing" : TYPES[value->type];
    if (name == NULL) tc_raise_at(tc_format("a value is %s, and %s was read", what, TYPES[type]), place);
    const char *advice = value == NULL ? ": require it in the schema, or test it with tc_has()" : "";
    tc_raise_at(tc_format("the member `%s` is %s, and %s was read%s", name, what, TYPES[type], advice), place);
}

const tc_value *tc_typed_at(const tc_value *object, const char *name, tc_type type, const tc_place *place) {
    return expected(tc_member(object, name), name, type, place);
}

static tc_text read_text(const tc_value *value, bool with_nul, const tc_place *place) {
    tc_text text = value->text;
    if (!with_nul && memchr(text.data, 0, text.length) != NULL) {
        tc_raise_at("a text contains U+0000, where a C string ends: read it with its length", place);
    }
    return text;
}

static int64_t read_integer(const tc_value *value, const tc_place *place) {
    if (value->is_integer) return value->integer;
    double number = value->number;
    if (!(number >= -0x1p63 && number < 0x1p63) || number != trunc(number)) {
        tc_raise_at("a number is not a whole number of 64 bits: bound it in the schema", place);
    }
    return (int64_t)number;
}

tc_text tc_text_at(const tc_value *object, const char *name, bool with_nul, const tc_place *place) {
    return read_text(tc_typed_at(object, name, TC_STRING, place), with_nul, place);
}

double tc_number_at(const tc_value *object, const char *name, const tc_place *place) {
    return tc_typed_at(object, name, TC_NUMBER, place)->number;
}

int64_t tc_integer_at(const tc_value *object, const char *name, const tc_place *place) {
    return read_integer(tc_typed_at(object, name, TC_NUMBER, place), place);
}

bool tc_bool_at(const tc_value *object, const char *name, const tc_place *place) {
    return tc_typed_at(object, name, TC_BOOL, place)->boolean;
}

tc_text tc_value_text(const tc_value *value, bool with_nul, const tc_place *place) {
    return read_text(expected(value, NULL, TC_STRING, place), with_nul, place);
}

double tc_value_number(const tc_value *value, const tc_place *place) {
    return expected(value, NULL, TC_NUMBER, place)->number;
}

int64_t tc_value_integer(const tc_value *value, const tc_place *place) {
    return read_integer(expected(value, NULL, TC_NUMBER, place), place);
}

bool tc_value_bool(const tc_value *value, const tc_place *place) {
    return expected(value, NULL, TC_BOOL, place)->boolean;
}

/* ---- Reading JSON ---- */

typedef struct {
    const char *data;
    size_t length, at;
    const char *error;
    char *scratch;
    size_t scratch_size;
} reader;

static bool wrong(reader *in, const char *what) {
    if (in->error == NULL) in->error = what;
    return false;
}

static int peek(reader *in) {
    while (in->at < in->length && memchr(" \t\n\r", in->data[in->at], 4) != NULL) in->at++;
    return in->at < in->length ? (unsigned char)in->data[in->at] : -1;
}

static int hex4(reader *in) {
    int code = 0;
    for (int i = 0; i < 4; i++, in->at++) {
        int c = in->at < in->length ? (unsigned char)in->data[in->at] : 0;
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0) return -1;
        code = code * 16 + digit;
    }
    return code;
}

static size_t put_utf8(char *to, uint32_t code) {
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6) to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)((length == 2 ? 0xC0 : length == 3 ? 0xE0 : 0xF0) | code);
    return length;
}

/* After `\u`: one character, of one or of two escapes. 0 bytes: it is half a character. */
static size_t read_escaped(reader *in, char *to) {
    int code = hex4(in);
    if (code < 0 || (code >= 0xDC00 && code <= 0xDFFF)) return 0;
    if (code < 0xD800 || code > 0xDBFF) return put_utf8(to, (uint32_t)code);
    if (in->at + 1 >= in->length || in->data[in->at] != '\\' || in->data[in->at + 1] != 'u') return 0;
    in->at += 2;
    int low = hex4(in);
    if (low < 0xDC00 || low > 0xDFFF) return 0;
    return put_utf8(to, 0x10000 + (((uint32_t)code - 0xD800) << 10) + ((uint32_t)low - 0xDC00));
}

/* The text of a string, in memory that the next one uses again. */
static bool read_string(reader *in, tc_text *text) {
    static const char NAMES[] = "\"\\/bfnrt", CODES[] = "\"\\/\b\f\n\r\t";
    size_t end = ++in->at;
    while (end < in->length && in->data[end] != '"') end += in->data[end] == '\\' ? 2 : 1;
    if (end >= in->length) return wrong(in, "a string has no end");
    if (end - in->at + 1 > in->scratch_size) {
        in->scratch_size = (end - in->at + 1) * 2;
        in->scratch = tc_alloc(in->scratch_size);
    }
    char *to = in->scratch;
    while (in->at < end) {
        unsigned char c = (unsigned char)in->data[in->at];
        if (c < 0x20) return wrong(in, "a string has a control character that is not escaped");
        if (c != '\\') {
            size_t step = utf8_length((const unsigned char *)in->data + in->at, end - in->at);
            if (step == 0) return wrong(in, "a string is not UTF-8");
            memcpy(to, in->data + in->at, step);
            to += step;
            in->at += step;
            continue;
        }
        char kind = in->data[in->at + 1];
        in->at += 2;
        const char *found = kind == 0 ? NULL : strchr(NAMES, kind);
        size_t step = kind == 'u' ? read_escaped(in, to) : 0;
        if (kind == 'u' && step == 0) return wrong(in, "a string has an escape that is not a character");
        if (kind != 'u' && found == NULL) return wrong(in, "a string has an unknown escape");
        if (kind != 'u') *to = CODES[found - NAMES];
        to += kind == 'u' ? step : 1;
    }
    in->at = end + 1;
    *text = (tc_text){in->scratch, (size_t)(to - in->scratch)};
    return true;
}

static size_t digits(reader *in) {
    size_t begin = in->at;
    while (in->at < in->length && in->data[in->at] >= '0' && in->data[in->at] <= '9') in->at++;
    return in->at - begin;
}

static bool is_next(reader *in, char a, char b) {
    return in->at < in->length && (in->data[in->at] == a || in->data[in->at] == b);
}

static tc_value *read_number(reader *in) {
    size_t begin = in->at;
    bool is_whole = true;
    in->at += is_next(in, '-', '-');
    size_t first = in->at, count = digits(in);
    if (count == 0 || (count > 1 && in->data[first] == '0')) return wrong(in, "a number has no form of JSON"), NULL;
    if (is_next(in, '.', '.')) {
        in->at++;
        is_whole = false;
        if (digits(in) == 0) return wrong(in, "a number has no digits after its point"), NULL;
    }
    if (is_next(in, 'e', 'E')) {
        in->at++;
        is_whole = false;
        in->at += is_next(in, '+', '-');
        if (digits(in) == 0) return wrong(in, "a number has no digits in its exponent"), NULL;
    }
    /* Not all of the text ends with a NUL byte. */
    const char *text = copied(in->data + begin, in->at - begin).data;
    if (is_whole && strcmp(text, "-0") != 0) {
        errno = 0;
        long long integer = strtoll(text, NULL, 10);
        if (errno == 0) return tc_make_integer(integer);
    }
    double number = strtod(text, NULL);
    return isfinite(number) ? tc_make_number(number) : (wrong(in, "a number is too large"), NULL);
}

/* A value that is neither an array nor an object. */
static tc_value *read_scalar(reader *in, int first) {
    static const char *const WORDS[] = {"null", "false", "true"};
    tc_text text;
    if (first == '"') return read_string(in, &text) ? tc_make_text(text.data, text.length) : NULL;
    if (first == '-' || (first >= '0' && first <= '9')) return read_number(in);
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(WORDS[i]);
        if (in->length - in->at >= length && memcmp(in->data + in->at, WORDS[i], length) == 0) {
            in->at += length;
            return i == 0 ? tc_make_null() : tc_make_bool(i == 2);
        }
    }
    return wrong(in, first < 0 ? "a value is missing at the end" : "there is no value"), NULL;
}

/* The name of a member, and the colon. */
static bool read_name(reader *in, tc_text *name) {
    tc_text text;
    if (peek(in) != '"') return wrong(in, "a member has no name");
    if (!read_string(in, &text)) return false;
    *name = copied(text.data, text.length);
    if (peek(in) != ':') return wrong(in, "a name has no `:` after it");
    in->at++;
    return true;
}

static tc_value *read_value(reader *in) {
    tc_value *open[MAX_DEPTH];
    tc_text names[MAX_DEPTH];
    size_t depth = 0;
    for (;;) {
        int first = peek(in);
        tc_value *value;
        if (first == '[' || first == '{') {
            if (depth == MAX_DEPTH) return wrong(in, "it nests deeper than 127 levels"), NULL;
            value = make(first == '[' ? TC_ARRAY : TC_OBJECT);
            in->at++;
            if (peek(in) != (first == '[' ? ']' : '}')) {
                open[depth] = value;
                if (first == '{' && !read_name(in, &names[depth])) return NULL;
                depth++;
                continue;
            }
            in->at++;
        } else if ((value = read_scalar(in, first)) == NULL) {
            return NULL;
        }
        /* The value is complete: so may be what it is in. */
        for (;;) {
            if (depth == 0) return value;
            tc_value *in_it = open[depth - 1];
            bool is_array = in_it->type == TC_ARRAY;
            if (is_array) {
                append(in_it, value, NULL, 0);
            } else {
                set(in_it, names[depth - 1].data, names[depth - 1].length, value);
            }
            int next = peek(in);
            if (next == ',') {
                in->at++;
                if (!is_array && !read_name(in, &names[depth - 1])) return NULL;
                break;
            }
            if (next != (is_array ? ']' : '}')) {
                wrong(in, is_array ? "there is no `,` or `]`" : "there is no `,` or `}`");
                return NULL;
            }
            in->at++;
            depth--;
            value = in_it;
        }
    }
}

tc_value *tc_parse(const char *data, size_t length, const char **error) {
    reader in = {.data = data, .length = length};
    tc_value *value = read_value(&in);
    if (value != NULL && peek(&in) >= 0) {
        wrong(&in, "there is more after the value");
        value = NULL;
    }
    if (error != NULL) *error = value != NULL ? NULL : tc_format("%s (byte %zu)", in.error, in.at + 1);
    return value;
}

/* ---- Writing JSON ---- */

typedef struct {
    char *data;
    size_t length, capacity;
    const char *error;
} writer;

static char *room(writer *out, size_t more) {
    if (out->capacity - out->length <= more) {
        if (more > SIZE_MAX / 4 - out->length) out_of_memory();
        out->capacity = (out->length + more) * 2 + 256;
        out->data = grown(out->data, out->length, out->capacity, 1);
    }
    return out->data + out->length;
}

static void put(writer *out, const char *data, size_t length) {
    memcpy(room(out, length), data, length);
    out->length += length;
}

static void put_text(writer *out, tc_text text) {
    static const char HEX[] = "0123456789abcdef", NAMES[] = "btn?fr";
    if (!is_utf8(text.data, text.length)) {
        out->error = "a text in it is not UTF-8";
        return;
    }
    /* Each byte takes six at most. */
    if (text.length > SIZE_MAX / 8) out_of_memory();
    char *to = room(out, text.length * 6 + 2), *begin = to;
    *to++ = '"';
    for (size_t at = 0; at < text.length; at++) {
        unsigned char c = (unsigned char)text.data[at];
        if (c >= 0x20 && c != '"' && c != '\\') {
            *to++ = (char)c;
            continue;
        }
        *to++ = '\\';
        if (c == '"' || c == '\\') {
            *to++ = (char)c;
        } else if (c >= '\b' && c <= '\r' && c != '\v') {
            *to++ = NAMES[c - '\b'];
        } else {
            memcpy(to, "u00", 3);
            to[3] = HEX[c >> 4];
            to[4] = HEX[c & 15];
            to += 5;
        }
    }
    *to++ = '"';
    out->length += (size_t)(to - begin);
}

static void put_number(writer *out, const tc_value *value) {
    char text[40];
    int length;
    if (value->is_integer) {
        length = snprintf(text, sizeof text, "%lld", (long long)value->integer);
    } else if (!isfinite(value->number)) {
        out->error = isnan(value->number) ? "a number in it is NaN" : "a number in it is infinite";
        return;
    } else {
        /* The shortest form that is read as the same number. */
        for (int precision = 15;; precision++) {
            length = snprintf(text, sizeof text, "%.*g", precision, value->number);
            if (precision == 17 || strtod(text, NULL) == value->number) break;
        }
    }
    put(out, text, (size_t)length);
}

static void put_scalar(writer *out, const tc_value *value) {
    switch (value->type) {
    case TC_BOOL: put(out, value->boolean ? "true" : "false", value->boolean ? 4 : 5); break;
    case TC_NUMBER: put_number(out, value); break;
    case TC_STRING: put_text(out, value->text); break;
    default: put(out, "null", 4);
    }
}

static void put_value(writer *out, const tc_value *value) {
    const tc_value *open[MAX_DEPTH];
    uint32_t next[MAX_DEPTH];
    size_t depth = 0;
    for (;;) {
        if (!is_container(value)) {
            put_scalar(out, value);
        } else if (depth == MAX_DEPTH) {
            out->error = "it nests deeper than 127 levels";
        } else {
            put(out, value->type == TC_ARRAY ? "[" : "{", 1);
            open[depth] = value;
            next[depth++] = 0;
        }
        if (out->error != NULL) return;
        while (depth > 0 && next[depth - 1] == open[depth - 1]->count) {
            put(out, open[depth - 1]->type == TC_ARRAY ? "]" : "}", 1);
            depth--;
        }
        if (depth == 0) return;
        const tc_value *in_it = open[depth - 1];
        uint32_t index = next[depth - 1]++;
        if (index > 0) put(out, ",", 1);
        if (in_it->type == TC_OBJECT) {
            put_text(out, in_it->names[index]);
            put(out, ":", 1);
        }
        value = in_it->items[index];
    }
}

static bool written(const tc_value *value, tc_text *text, const char **error) {
    writer out = {0};
    put_value(&out, value == NULL ? tc_make_null() : value);
    if (error != NULL) *error = out.error;
    if (out.error != NULL) return false;
    *room(&out, 1) = 0;
    *text = (tc_text){out.data, out.length};
    return true;
}

const char *tc_write(const tc_value *value, const char **error) {
    tc_text text;
    return written(value, &text, error) ? text.data : NULL;
}

/* ---- Endings ---- */

struct tc_ending {
    enum { OK, FAILURE, QUESTION, HALT } kind;
    /* The message, the question or the reason. */
    const char *words;
    /* The result, the data of a failure, or the options of a question. */
    const tc_value *value;
    const tc_value *state;
    const char *answer_schema;
    bool ends_turn, retries;
    uint64_t retry_after_ms;
    exports_toolcell_tool_tool_part_t *parts;
    size_t part_count, part_capacity;
};

static const char *kept(const char *text) {
    return text == NULL ? NULL : copied(text, strlen(text)).data;
}

static tc_outcome ending(int kind, const char *words, const tc_value *value) {
    struct tc_ending *ending = tc_alloc(sizeof *ending);
    ending->kind = kind;
    ending->words = kept(words);
    ending->value = value;
    return (tc_outcome){ending};
}

tc_outcome tc_ok(const tc_value *value) {
    return ending(OK, NULL, value);
}

tc_outcome tc_ok_null(void) {
    return tc_ok(NULL);
}

tc_outcome tc_ok_bool(bool value) {
    return tc_ok(tc_make_bool(value));
}

tc_outcome tc_ok_number(double value) {
    return tc_ok(tc_make_number(value));
}

tc_outcome tc_ok_integer(int64_t value) {
    return tc_ok(tc_make_integer(value));
}

tc_outcome tc_ok_string(const char *text) {
    return tc_ok(tc_make_string(text));
}

tc_outcome tc_ok_text(const char *data, size_t length) {
    return tc_ok(tc_make_text(data, length));
}

/* The ending, if it is of this kind: an ending of another kind would lose what is added. */
static struct tc_ending *of_kind(tc_outcome outcome, int kind, const char *function, const char *makers) {
    if (outcome.ending != NULL && (int)outcome.ending->kind == kind) return outcome.ending;
    raise_in_parts(tc_format("%s() takes what %s returns, and got another ending", function, makers), NULL, NULL, 0);
}

tc_outcome tc_with_message(tc_outcome outcome, const char *message) {
    of_kind(outcome, OK, __func__, "tc_ok()")->words = kept(message);
    return outcome;
}

static tc_outcome with_part(tc_outcome outcome, exports_toolcell_tool_tool_part_t part) {
    struct tc_ending *ending = of_kind(outcome, OK, "tc_with_…", "tc_ok()");
    if (ending->part_count == ending->part_capacity) {
        ending->part_capacity = ending->part_capacity * 2 + 4;
        ending->parts = grown(ending->parts, ending->part_count, ending->part_capacity, sizeof part);
    }
    ending->parts[ending->part_count++] = part;
    return outcome;
}

tc_outcome tc_with_text(tc_outcome outcome, const char *text) {
    exports_toolcell_tool_tool_part_t part = {.tag = EXPORTS_TOOLCELL_TOOL_TOOL_PART_TEXT};
    part.val.text = string(kept(text));
    return with_part(outcome, part);
}

static exports_toolcell_tool_tool_media_t media(const char *mime_type, const void *data, size_t length) {
    exports_toolcell_tool_tool_media_t media = {.mime_type = string(kept(mime_type))};
    media.data.ptr = (uint8_t *)copied(data, length).data;
    media.data.len = length;
    return media;
}

tc_outcome tc_with_image(tc_outcome outcome, const char *mime_type, const void *data, size_t length) {
    exports_toolcell_tool_tool_part_t part = {.tag = EXPORTS_TOOLCELL_TOOL_TOOL_PART_IMAGE};
    part.val.image = media(mime_type, data, length);
    return with_part(outcome, part);
}

tc_outcome tc_with_audio(tc_outcome outcome, const char *mime_type, const void *data, size_t length) {
    exports_toolcell_tool_tool_part_t part = {.tag = EXPORTS_TOOLCELL_TOOL_TOOL_PART_AUDIO};
    part.val.audio = media(mime_type, data, length);
    return with_part(outcome, part);
}

tc_outcome tc_with_link(tc_outcome outcome, const char *uri, const char *name) {
    exports_toolcell_tool_tool_part_t part = {.tag = EXPORTS_TOOLCELL_TOOL_TOOL_PART_RESOURCE_LINK};
    part.val.resource_link.uri = string(kept(uri));
    part.val.resource_link.name = optional(kept(name));
    return with_part(outcome, part);
}

tc_outcome tc_end_turn(tc_outcome outcome) {
    of_kind(outcome, OK, __func__, "tc_ok()")->ends_turn = true;
    return outcome;
}

tc_outcome tc_fail(const char *message) {
    return ending(FAILURE, message, NULL);
}

tc_outcome tc_fail_with(const char *message, const tc_value *data) {
    return ending(FAILURE, message, data);
}

tc_outcome tc_retry_after(tc_outcome failure, uint64_t milliseconds) {
    struct tc_ending *ending = of_kind(failure, FAILURE, __func__, "tc_fail()");
    ending->retries = true;
    ending->retry_after_ms = milliseconds;
    return failure;
}

tc_outcome tc_ask(const char *question, const tc_value *options, const tc_value *state) {
    tc_outcome outcome = ending(QUESTION, question, options);
    outcome.ending->state = state;
    return outcome;
}

tc_outcome tc_answer_schema(tc_outcome question, const char *schema) {
    of_kind(question, QUESTION, __func__, "tc_ask()")->answer_schema = kept(schema);
    return question;
}

tc_outcome tc_halt(const char *reason, const tc_value *result) {
    return ending(HALT, reason, result);
}

/* ---- The call ---- */

struct tc_call {
    const char *id;
    const tc_value *arguments;
    const abi_context *context;
};

static const char *given(const toolbox_with_grants_option_string_t *text) {
    return text->is_some ? text_of(text->val).data : NULL;
}

const tc_value *tc_arguments(const tc_call *call) {
    return call->arguments;
}

const char *tc_call_id(const tc_call *call) {
    return call->id;
}

const char *tc_session_id(const tc_call *call) {
    return given(&call->context->session_id);
}

const char *tc_request_id(const tc_call *call) {
    return given(&call->context->request_id);
}

const char *tc_thread_id(const tc_call *call) {
    return given(&call->context->thread_id);
}

const char *tc_run_id(const tc_call *call) {
    return given(&call->context->run_id);
}

const char *tc_tenant(const tc_call *call) {
    return given(&call->context->tenant);
}

uint32_t tc_attempt(const tc_call *call) {
    return call->context->attempt;
}

uint64_t tc_remaining_ms(const tc_call *call) {
    return call->context->remaining_ms;
}

/* JSON of the host, or of the author's definitions. */
static tc_value *parsed(const char *data, size_t length, const char *what) {
    const char *error;
    tc_value *value = tc_parse(data, length, &error);
    if (value == NULL) raise_in_parts(tc_format("%s cannot be read as JSON: %s", what, error), NULL, NULL, 0);
    return value;
}

const tc_value *tc_metadata(const tc_call *call) {
    if (!call->context->metadata.is_some) return NULL;
    abi_string text = call->context->metadata.val;
    return parsed((const char *)text.ptr, text.len, "the metadata of the call");
}

const tc_value *tc_answer(const tc_call *call) {
    if (!call->context->resume.is_some) return NULL;
    abi_string text = call->context->resume.val.answer;
    return parsed((const char *)text.ptr, text.len, "the answer");
}

const tc_value *tc_state(const tc_call *call) {
    if (!call->context->resume.is_some || !call->context->resume.val.state.is_some) return NULL;
    abi_string text = call->context->resume.val.state.val;
    return parsed((const char *)text.ptr, text.len, "the state");
}

/* ---- The exports ---- */

static tc_tool *tools, **last_tool = &tools;
static size_t tool_count;

void tc_register(tc_tool *tool) {
    *last_tool = tool;
    last_tool = &tool->next;
    tool_count++;
}

static const tc_tool *tool_named(abi_string name) {
    for (const tc_tool *tool = tools; tool != NULL; tool = tool->next) {
        if (strlen(tool->name) == name.len && memcmp(tool->name, name.ptr, name.len) == 0) return tool;
    }
    raise_in_parts("the component has no tool of this name", NULL, NULL, 0);
}

static size_t needs_of(const tc_tool *tool) {
    size_t count = 0;
    while (tool->needs != NULL && tool->needs[count].kind != NULL) count++;
    return count;
}

/* JSON that the author wrote, checked, so that a mistake is told with the name of the tool. */
static abi_string json_of(const char *json, const char *what, const tc_tool *tool) {
    parsed(json, strlen(json), tc_format("the %s of the tool `%s`", what, tool->name));
    return string(json);
}

static exports_toolcell_tool_tool_option_json_t optional_json(const char *json, const char *what, const tc_tool *tool) {
    if (json == NULL) return (exports_toolcell_tool_tool_option_json_t){0};
    return (exports_toolcell_tool_tool_option_json_t){true, json_of(json, what, tool)};
}

static void describe(const tc_tool *tool, abi_definition *to) {
    *to = (abi_definition){.name = string(tool->name), .description = string(tool->description)};
    to->parameters = optional_json(tool->parameters, "parameters", tool);
    to->output = optional_json(tool->output, "output", tool);
    to->hints |= tool->read_only ? EXPORTS_TOOLCELL_TOOL_TOOL_HINTS_READ_ONLY : 0;
    to->hints |= tool->idempotent ? EXPORTS_TOOLCELL_TOOL_TOOL_HINTS_IDEMPOTENT : 0;
    to->hints |= tool->destructive ? EXPORTS_TOOLCELL_TOOL_TOOL_HINTS_DESTRUCTIVE : 0;
    to->hints |= tool->open_world ? EXPORTS_TOOLCELL_TOOL_TOOL_HINTS_OPEN_WORLD : 0;
    to->checks |= tool->validate != NULL ? EXPORTS_TOOLCELL_TOOL_TOOL_CHECKS_VALIDATE : 0;
    to->checks |= tool->visible != NULL ? EXPORTS_TOOLCELL_TOOL_TOOL_CHECKS_VISIBLE : 0;
    to->max_execution_ms.is_some = tool->max_execution_ms != 0;
    to->max_execution_ms.val = tool->max_execution_ms;
    to->needs.len = needs_of(tool);
    to->needs.ptr = tc_alloc(to->needs.len * sizeof *to->needs.ptr);
    for (size_t i = 0; i < to->needs.len; i++) {
        const tc_need *need = &tool->needs[i];
        to->needs.ptr[i].kind = string(need->kind);
        to->needs.ptr[i].pattern = string(need->pattern);
        to->needs.ptr[i].reason = string(need->reason);
    }
    if (to->needs.len == 0) {
        /* Without it the component's imports would be its needs, and those are the C library's. */
        to->extensions.len = 1;
        to->extensions.ptr = tc_alloc(sizeof *to->extensions.ptr);
        to->extensions.ptr[0].f0 = string("needs");
        to->extensions.ptr[0].f1 = string("[]");
    }
    if (tool->attributes == NULL) return;
    const char *what = tc_format("the attributes of the tool `%s`", tool->name);
    const tc_value *attributes = parsed(tool->attributes, strlen(tool->attributes), what);
    if (attributes->type != TC_OBJECT) raise_in_parts(tc_format("%s are not an object", what), NULL, NULL, 0);
    to->attributes.len = attributes->count;
    to->attributes.ptr = tc_alloc(attributes->count * sizeof *to->attributes.ptr);
    for (uint32_t i = 0; i < attributes->count; i++) {
        to->attributes.ptr[i].f0 = string(attributes->names[i].data);
        to->attributes.ptr[i].f1 = string(tc_write(attributes->items[i], NULL));
    }
}

void exports_toolcell_tool_tool_describe(exports_toolcell_tool_tool_list_definition_t *ret) {
    if (tools == NULL) raise_in_parts("there is no tool: write TOOLCELL_TOOL(…) after a function", NULL, NULL, 0);
    ret->len = tool_count;
    ret->ptr = tc_alloc(tool_count * sizeof *ret->ptr);
    size_t at = 0;
    for (const tc_tool *tool = tools; tool != NULL; tool = tool->next) describe(tool, &ret->ptr[at++]);
}

/* Whether a text in the value, or the name of a member, contains U+0000. */
static bool has_nul(abi_string json) {
    static const char NUL[] = "\\u0000";
    for (size_t at = 0; at + sizeof NUL - 1 <= json.len; at++) {
        if (json.ptr[at] != '\\') continue;
        if (memcmp(json.ptr + at, NUL, sizeof NUL - 1) == 0) return true;
        /* What follows is escaped: it does not begin an escape. */
        at++;
    }
    return false;
}

static tc_call call_of(const abi_call *from, const abi_context *context) {
    tc_call call = {.id = text_of(from->id).data, .context = context};
    call.arguments = parsed((const char *)from->arguments.ptr, from->arguments.len, "the arguments of the call");
    return call;
}

static const char NO_NUL[] = "the arguments contain the character U+0000, which this tool does not accept";

void exports_toolcell_tool_tool_validate(abi_call *from, toolbox_with_grants_list_string_t *ret) {
    const tc_tool *tool = tool_named(from->name);
    abi_context context = {0};
    tc_call call = call_of(from, &context);
    tc_value *faults = tc_make_array();
    if (!tool->accepts_nul && has_nul(from->arguments)) {
        append(faults, tc_make_string(NO_NUL), NULL, 0);
    } else if (tool->validate != NULL) {
        tool->validate(&call, faults);
    }
    ret->len = faults->count;
    ret->ptr = tc_alloc(faults->count * sizeof *ret->ptr);
    for (uint32_t i = 0; i < faults->count; i++) {
        bool is_text = faults->items[i]->type == TC_STRING;
        tc_text text = is_text ? faults->items[i]->text : (tc_text){"a fault that is not a text", 26};
        ret->ptr[i] = words(text.data, text.length);
    }
    fflush(NULL);
}

bool exports_toolcell_tool_tool_visible(abi_string *name, abi_context *context) {
    const tc_tool *tool = tool_named(*name);
    tc_call call = {.id = "", .context = context};
    for (size_t i = 0; i < context->extensions.len; i++) {
        abi_string key = context->extensions.ptr[i].f0, json = context->extensions.ptr[i].f1;
        if (key.len == 9 && memcmp(key.ptr, "arguments", 9) == 0) {
            call.arguments = parsed((const char *)json.ptr, json.len, "the arguments of the call");
        }
    }
    bool is_visible = tool->visible == NULL || tool->visible(&call);
    fflush(NULL);
    return is_visible;
}

/* Writes a value that goes to the host. False: the outcome is a failure that says why it cannot be written. */
static bool json(const tc_value *value, const char *what, abi_string *to, abi_outcome *outcome) {
    tc_text text;
    const char *error;
    if (written(value, &text, &error)) {
        *to = (abi_string){(uint8_t *)text.data, text.length};
        return true;
    }
    *outcome = (abi_outcome){.tag = EXPORTS_TOOLCELL_TOOL_TOOL_OUTCOME_ERROR};
    outcome->val.error.message = string(tc_format("the tool's %s cannot be written as JSON: %s", what, error));
    return false;
}

static void ok(const struct tc_ending *from, abi_outcome *to) {
    exports_toolcell_tool_tool_output_t output = {.message = optional(from->words), .end_turn = from->ends_turn};
    output.parts.ptr = from->parts;
    output.parts.len = from->part_count;
    if (!json(from->value, "result", &output.value, to)) return;
    to->tag = EXPORTS_TOOLCELL_TOOL_TOOL_OUTCOME_OK;
    to->val.ok = output;
}

static void failure(const struct tc_ending *from, abi_outcome *to) {
    exports_toolcell_tool_tool_failure_t failure = {.message = string(from->words)};
    failure.data.is_some = from->value != NULL;
    if (from->value != NULL && !json(from->value, "data", &failure.data.val, to)) return;
    failure.retryable.is_some = failure.retryable.val = from->retries;
    failure.retry_after_ms.is_some = from->retries;
    failure.retry_after_ms.val = from->retry_after_ms;
    to->tag = EXPORTS_TOOLCELL_TOOL_TOOL_OUTCOME_ERROR;
    to->val.error = failure;
}

static void question(const struct tc_ending *from, abi_outcome *to, const tc_tool *tool) {
    exports_toolcell_tool_tool_question_t question = {.question = string(from->words)};
    question.options.is_some = from->value != NULL;
    if (from->value != NULL && !json(from->value, "options", &question.options.val, to)) return;
    question.state.is_some = from->state != NULL;
    if (from->state != NULL && !json(from->state, "state", &question.state.val, to)) return;
    question.answer_schema = optional_json(from->answer_schema, "answer schema", tool);
    to->tag = EXPORTS_TOOLCELL_TOOL_TOOL_OUTCOME_ASK_USER;
    to->val.ask_user = question;
}

static void halt(const struct tc_ending *from, abi_outcome *to) {
    exports_toolcell_tool_tool_halt_t halt = {.reason = string(from->words)};
    if (!json(from->value, "result", &halt.result, to)) return;
    to->tag = EXPORTS_TOOLCELL_TOOL_TOOL_OUTCOME_HALT;
    to->val.halt = halt;
}

void exports_toolcell_tool_tool_execute(abi_call *from, abi_context *context, abi_outcome *ret) {
    const tc_tool *tool = tool_named(from->name);
    tc_call call = call_of(from, context);
    bool is_refused = !tool->accepts_nul && has_nul(from->arguments);
    tc_outcome outcome = is_refused ? tc_fail(NO_NUL) : tool->handler(&call);
    if (outcome.ending == NULL) {
        raise_in_parts(tc_format("the function of the tool `%s` returned no ending", tool->name), NULL, NULL, 0);
    }
    switch (outcome.ending->kind) {
    case OK: ok(outcome.ending, ret); break;
    case FAILURE: failure(outcome.ending, ret); break;
    case QUESTION: question(outcome.ending, ret, tool); break;
    case HALT: halt(outcome.ending, ret); break;
    }
    fflush(NULL);
}

/* The bindings would free what an export returned. It is in the arena. */
#define KEEPS(NAME)                                                                                                    \
    __attribute__((export_name("cabi_post_toolcell:tool/tool@0.1.0#" #NAME))) void                                     \
        __wasm_export_exports_toolcell_tool_tool_##NAME##_post_return(uint8_t *returned) { (void)returned; }
KEEPS(describe)
KEEPS(validate)
KEEPS(execute)

/* The bindings refer to it, to link an object file with the type of the component, which `toolcell build` adds itself. */
void __component_type_object_force_link_toolbox_with_grants(void) {}

/* ---- The host ---- */

void tc_log(tc_level level, const char *message) {
    abi_string text = string(message);
    toolcell_tool_log_log((toolcell_tool_log_level_t)(level > TC_ERROR ? TC_ERROR : level), &text);
}

void tc_progress(uint64_t done, uint64_t total, const char *message) {
    abi_string text = string(message);
    toolcell_tool_progress_report(done, total == 0 ? NULL : &total, message == NULL ? NULL : &text);
}

bool tc_aborted(void) {
    return toolcell_tool_abort_requested();
}

/* Says why the host did not do it. Returns false. */
static bool fails(tc_error *error, tc_error_kind kind, const char *message) {
    if (error != NULL) *error = (tc_error){.kind = kind, .message = message};
    return false;
}

static bool failed(tc_error *error, tc_error_kind kind, const char *format, const abi_string *told) {
    return fails(error, kind, tc_format(format, told == NULL ? "" : text_of(*told).data));
}

/* Whether a tool needs this kind. Without it the host denies the call; its message cannot say what the source lacks. */
static bool is_declared(const char *kind, tc_error *error) {
    for (const tc_tool *tool = tools; tool != NULL; tool = tool->next) {
        for (size_t i = 0, count = needs_of(tool); i < count; i++) {
            if (strcmp(tool->needs[i].kind, kind) == 0) return true;
        }
    }
    const char *format = "`%s` is not among what the tool needs: add TC_NEEDS({\"%s\", pattern, reason})";
    return fails(error, TC_DENIED, tc_format(format, kind, kind));
}

static bool kv_failed(const toolcell_tool_kv_fault_t *fault, tc_error *error) {
    switch (fault->tag) {
    case TOOLCELL_TOOL_KV_FAULT_DENIED: return failed(error, TC_DENIED, "%s", &fault->val.denied);
    case TOOLCELL_TOOL_KV_FAULT_INVALID_KEY:
        return failed(error, TC_INVALID_KEY, "the store has no such key: %s", &fault->val.invalid_key);
    case TOOLCELL_TOOL_KV_FAULT_OVER_QUOTA:
        return failed(error, TC_OVER_QUOTA, "the store is full: %s", &fault->val.over_quota);
    default: return failed(error, TC_UNAVAILABLE, "not available: %s", &fault->val.unavailable);
    }
}

bool tc_kv_get(const char *key, tc_text *value, tc_error *error) {
    toolcell_tool_kv_option_entry_t entry;
    toolcell_tool_kv_fault_t fault;
    abi_string name = string(key);
    *value = (tc_text){0};
    if (!is_declared("kv", error)) return false;
    if (!toolcell_tool_kv_get(&name, &entry, &fault)) return kv_failed(&fault, error);
    if (entry.is_some) *value = copied((const char *)entry.val.data.ptr, entry.val.data.len);
    return true;
}

bool tc_kv_get_value(const char *key, tc_value **value, tc_error *error) {
    tc_text text;
    const char *why;
    *value = NULL;
    if (!tc_kv_get(key, &text, error)) return false;
    if (text.data == NULL) return true;
    *value = tc_parse(text.data, text.length, &why);
    if (*value == NULL) return fails(error, TC_INVALID, tc_format("the value of the key is not JSON: %s", why));
    return true;
}

bool tc_kv_set(const char *key, const void *data, size_t length, uint64_t ttl_ms, tc_error *error) {
    uint64_t version;
    toolcell_tool_kv_fault_t fault;
    abi_string name = string(key);
    toolbox_with_grants_list_u8_t bytes = {(uint8_t *)data, length};
    if (!is_declared("kv", error)) return false;
    bool is_set = toolcell_tool_kv_set(&name, &bytes, ttl_ms == 0 ? NULL : &ttl_ms, &version, &fault);
    return is_set || kv_failed(&fault, error);
}

bool tc_kv_set_value(const char *key, const tc_value *value, uint64_t ttl_ms, tc_error *error) {
    tc_text text;
    const char *why;
    if (written(value, &text, &why)) return tc_kv_set(key, text.data, text.length, ttl_ms, error);
    return fails(error, TC_INVALID, tc_format("the value cannot be written as JSON: %s", why));
}

bool tc_kv_delete(const char *key, bool *existed, tc_error *error) {
    bool was_there;
    toolcell_tool_kv_fault_t fault;
    abi_string name = string(key);
    if (!is_declared("kv", error)) return false;
    if (!toolcell_tool_kv_delete(&name, &was_there, &fault)) return kv_failed(&fault, error);
    if (existed != NULL) *existed = was_there;
    return true;
}

bool tc_kv_list(const char *prefix, tc_value **keys, tc_error *error) {
    toolcell_tool_kv_page_t page = {0};
    toolcell_tool_kv_fault_t fault;
    abi_string begin = string(prefix);
    *keys = tc_make_array();
    if (!is_declared("kv", error)) return false;
    do {
        abi_string cursor = page.cursor.val;
        if (!toolcell_tool_kv_list(&begin, page.cursor.is_some ? &cursor : NULL, PAGE, &page, &fault)) {
            return kv_failed(&fault, error);
        }
        for (size_t i = 0; i < page.keys.len; i++) {
            append(*keys, tc_make_text((const char *)page.keys.ptr[i].ptr, page.keys.ptr[i].len), NULL, 0);
        }
    } while (page.cursor.is_some);
    return true;
}

static bool secret_failed(const toolcell_tool_secrets_fault_t *fault, tc_error *error) {
    if (fault->tag == TOOLCELL_TOOL_SECRETS_FAULT_DENIED) return failed(error, TC_DENIED, "%s", &fault->val.denied);
    return failed(error, TC_UNAVAILABLE, "not available: %s", &fault->val.unavailable);
}

bool tc_secret_get(const char *name, tc_secret *secret, tc_error *error) {
    toolcell_tool_secrets_own_secret_t handle;
    toolcell_tool_secrets_fault_t fault;
    abi_string text = string(name);
    if (!is_declared("secret", error)) return false;
    if (!toolcell_tool_secrets_get(&text, &handle, &fault)) return secret_failed(&fault, error);
    secret->handle = handle.__handle;
    return true;
}

bool tc_secret_reveal(const char *name, tc_text *value, tc_error *error) {
    abi_string revealed, text = string(name);
    toolcell_tool_reveal_fault_t fault;
    if (!is_declared("reveal", error)) return false;
    if (!toolcell_tool_reveal_value(&text, &revealed, &fault)) return secret_failed(&fault, error);
    *value = text_of(revealed);
    return true;
}

static bool send_failed(const toolcell_tool_http_fault_t *fault, tc_error *error) {
    switch (fault->tag) {
    case TOOLCELL_TOOL_HTTP_FAULT_DENIED: return failed(error, TC_DENIED, "%s", &fault->val.denied);
    case TOOLCELL_TOOL_HTTP_FAULT_INVALID:
        return failed(error, TC_INVALID, "the request cannot be sent: %s", &fault->val.invalid);
    case TOOLCELL_TOOL_HTTP_FAULT_UNREACHABLE:
        return failed(error, TC_UNREACHABLE, "the server cannot be reached: %s", &fault->val.unreachable);
    case TOOLCELL_TOOL_HTTP_FAULT_TIMEOUT:
        return failed(error, TC_TIMEOUT, "the server did not answer in time%s", NULL);
    case TOOLCELL_TOOL_HTTP_FAULT_OVER_BUDGET:
        return failed(error, TC_OVER_BUDGET, "the call's budget of requests is used up: %s", &fault->val.over_budget);
    default: return failed(error, TC_BROKEN, "the connection broke: %s", &fault->val.broken);
    }
}

bool tc_send(const tc_request *from, tc_response *response, tc_error *error) {
    toolcell_tool_http_request_t request = {0};
    toolcell_tool_http_response_t answer;
    toolcell_tool_http_fault_t fault;
    *response = (tc_response){0};
    if (!is_declared("http", error)) return false;
    request.method = string(from->method == NULL ? "GET" : from->method);
    request.url = string(from->url);
    request.headers.len = from->header_count;
    request.headers.ptr = tc_alloc(from->header_count * sizeof *request.headers.ptr);
    for (size_t i = 0; i < from->header_count; i++) {
        request.headers.ptr[i].f0 = string(from->headers[i].name);
        request.headers.ptr[i].f1 = string(from->headers[i].value);
    }
    request.body.is_some = from->body != NULL;
    request.body.val.ptr = (uint8_t *)from->body;
    request.body.val.len = from->body_length;
    request.timeout_ms.is_some = from->timeout_ms != 0;
    request.timeout_ms.val = from->timeout_ms;
    toolcell_tool_http_borrow_secret_t secret = {from->secret == NULL ? 0 : from->secret->handle};
    if (!toolcell_tool_http_send(&request, from->secret == NULL ? NULL : &secret, &answer, &fault)) {
        return send_failed(&fault, error);
    }
    response->status = answer.status;
    response->body = copied((const char *)answer.body.ptr, answer.body.len);
    tc_header *headers = tc_alloc(answer.headers.len * sizeof *headers);
    for (size_t i = 0; i < answer.headers.len; i++) {
        headers[i].name = text_of(answer.headers.ptr[i].f0).data;
        headers[i].value = text_of(answer.headers.ptr[i].f1).data;
    }
    response->headers = headers;
    response->header_count = answer.headers.len;
    return true;
}

const char *tc_response_header(const tc_response *response, const char *name) {
    for (size_t i = 0; i < response->header_count; i++) {
        if (strcmp(response->headers[i].name, name) == 0) return response->headers[i].value;
    }
    return NULL;
}

const char *tc_error_name(tc_error_kind kind) {
    static const char *const NAMES[] = {
        [TC_NO_ERROR] = "no_error", [TC_DENIED] = "denied", [TC_INVALID] = "invalid", [TC_UNREACHABLE] = "unreachable",
        [TC_TIMEOUT] = "timeout", [TC_OVER_BUDGET] = "over_budget", [TC_BROKEN] = "broken",
        [TC_INVALID_KEY] = "invalid_key", [TC_OVER_QUOTA] = "over_quota", [TC_UNAVAILABLE] = "unavailable",
        [TC_LIMIT] = "limit", [TC_FAILED] = "failed", [TC_ASKED_USER] = "ask_user", [TC_HALTED] = "halt",
        [TC_TOOL_ERROR] = "tool_error", [TC_REFUSED] = "refused",
    };
    return (size_t)kind < sizeof NAMES / sizeof *NAMES ? NAMES[kind] : "unknown";
}

/* The object that tells how another tool ended. */
static tc_value *ending_of(abi_string told) {
    tc_text text = text_of(told);
    return tc_parse(text.data, text.length, NULL);
}

/* How another tool ended, unless it succeeded: `member` of the ending is told after `words`. Returns false. */
static bool ended(tc_error *error, tc_error_kind kind, const char *words, abi_string told, const char *member) {
    const tc_value *ending = ending_of(told);
    const tc_value *part = tc_member(ending, member);
    const char *text = tc_type_of(part) == TC_STRING ? tc_as_string(part) : "";
    fails(error, kind, tc_format("%s%s", words, text));
    if (error != NULL) error->data = kind == TC_FAILED ? tc_member(ending, "data") : ending;
    return false;
}

bool tc_invoke(const char *name, const tc_value *arguments, tc_value **value, tc_error *error) {
    toolcell_tool_invoke_ending_t ending;
    toolcell_tool_invoke_fault_t fault;
    tc_text text = {"{}", 2};
    const char *why;
    *value = NULL;
    if (!is_declared("invoke", error)) return false;
    if (arguments != NULL && !written(arguments, &text, &why)) {
        return fails(error, TC_INVALID, tc_format("the arguments cannot be written as JSON: %s", why));
    }
    abi_string tool = string(name), given = {(uint8_t *)text.data, text.length};
    if (!toolcell_tool_invoke_call(&tool, &given, &ending, &fault)) {
        switch (fault.tag) {
        case TOOLCELL_TOOL_INVOKE_FAULT_DENIED: return failed(error, TC_DENIED, "%s", &fault.val.denied);
        case TOOLCELL_TOOL_INVOKE_FAULT_LIMIT: return failed(error, TC_LIMIT, "%s", &fault.val.limit);
        default: return failed(error, TC_UNAVAILABLE, "%s", &fault.val.unavailable);
        }
    }
    switch (ending.tag) {
    case TOOLCELL_TOOL_INVOKE_ENDING_OK: *value = (tc_value *)tc_member(ending_of(ending.val.ok), "value"); return true;
    case TOOLCELL_TOOL_INVOKE_ENDING_ERROR: return ended(error, TC_FAILED, "", ending.val.error, "message");
    case TOOLCELL_TOOL_INVOKE_ENDING_ASK_USER:
        return ended(error, TC_ASKED_USER, "the other tool asks a person: ", ending.val.ask_user, "question");
    case TOOLCELL_TOOL_INVOKE_ENDING_HALT:
        return ended(error, TC_HALTED, "the other tool stops the loop: ", ending.val.halt, "reason");
    case TOOLCELL_TOOL_INVOKE_ENDING_TOOL_ERROR:
        return ended(error, TC_TOOL_ERROR, "the other tool failed: ", ending.val.tool_error, "message");
    default: return ended(error, TC_REFUSED, "the host refused the call: ", ending.val.refusal, "message");
    }
}
