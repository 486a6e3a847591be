/*
 * The SDK for tools in C. A tool is a function and the macro TOOLCELL_TOOL; `toolcell build` compiles it with this SDK.
 *
 * - Every pointer that a function here returns stays valid until the call ends. Nothing has to be freed.
 * - Texts are UTF-8, and end with a NUL byte. Functions that take a text copy it.
 * - A mistake of the author's, for example a missing member that the schema does not require, ends the call as
 *   `handler_raised`, with a message and the place in the source.
 */
#ifndef TOOLCELL_H
#define TOOLCELL_H

/* What assert() calls, whichever header comes first. An editor may read the C library of its own machine. */
#ifdef __wasm__
#define __assert_fail tc_assert_fail
#endif
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The call: its arguments, and where it comes from. */
typedef struct tc_call tc_call;
/* A JSON value. */
typedef struct tc_value tc_value;
/* How a call ends. The functions below that return one are the only way to make one. */
typedef struct {
    struct tc_ending *ending;
} tc_outcome;
/* Bytes with their length. `data` has a NUL byte after the last one. */
typedef struct {
    const char *data;
    size_t length;
} tc_text;
/* A place in the source, which the macros below fill in. */
typedef struct {
    const char *file;
    int line;
    const char *function;
} tc_place;
#define TC_HERE (&(const tc_place){__FILE__, __LINE__, __func__})

/* ---- A tool ---- */

/* Something that a tool needs and an operator grants: its kind (`http`, `kv`, `secret`, `invoke`), its pattern, and the reason. */
typedef struct {
    const char *kind, *pattern, *reason;
} tc_need;

/* What TOOLCELL_TOOL describes. The members from `output` on are optional. */
typedef struct tc_tool {
    /* 1 to 64 of A-Z, a-z, 0-9, _ and -. */
    const char *name;
    /* What the tool does and when to use it: a model reads this. */
    const char *description;
    /* JSON Schema of the arguments, an object schema. NULL accepts any object. */
    const char *parameters;
    tc_outcome (*handler)(tc_call *call);
    /* JSON Schema of the result. */
    const char *output;
    /* What the author says about the effects of a call. */
    bool read_only, idempotent, destructive, open_world;
    /* Whether texts of the arguments may contain the character U+0000. Read them with tc_text_of() then. */
    bool accepts_nul;
    /* Adds a text to `faults` for each fault of the arguments that the schema cannot tell, with tc_add_string(). */
    void (*validate)(tc_call *call, tc_value *faults);
    /* Whether the tool is offered in this context. tc_arguments(call) is NULL if the tools are listed. */
    bool (*visible)(tc_call *call);
    /* Upper bound of one call. 0: the caller's timeout alone. */
    uint64_t max_execution_ms;
    /* Free metadata: a JSON object. */
    const char *attributes;
    /* Ends with an entry of which all members are NULL: write TC_NEEDS. */
    const tc_need *needs;
    struct tc_tool *next;
} tc_tool;

/*
 * Makes a tool of a function. Further members of tc_tool may follow:
 *
 *   TOOLCELL_TOOL("word_count", "Counts the words of a text.", PARAMETERS, word_count, .read_only = true)
 */
#define TOOLCELL_TOOL(NAME, DESCRIPTION, PARAMETERS, FUNCTION, ...)                                                    \
    _Static_assert(sizeof(NAME) >= 2 && sizeof(NAME) <= 65, "the name of a tool has 1 to 64 characters");              \
    static tc_tool tc_tool_##FUNCTION = {                                                                              \
        .name = NAME, .description = DESCRIPTION, .parameters = PARAMETERS, .handler = FUNCTION, __VA_ARGS__};         \
    __attribute__((constructor)) static void tc_register_##FUNCTION(void) { tc_register(&tc_tool_##FUNCTION); }

/* TC_NEEDS({"kv", "write total", "to count"}, {"http", "GET https://api.example.com", "to look it up"}) */
#define TC_NEEDS(...) .needs = (const tc_need[]) {__VA_ARGS__, {NULL, NULL, NULL}}

/* JSON as it is written, as a text: TC_JSON({"type": "object", "required": ["text"]}) */
#define TC_JSON(...) #__VA_ARGS__

void tc_register(tc_tool *tool);

/* ---- Arguments and other JSON values ---- */

typedef enum { TC_NULL, TC_BOOL, TC_NUMBER, TC_STRING, TC_ARRAY, TC_OBJECT } tc_type;

/* The arguments of the call, an object. */
const tc_value *tc_arguments(const tc_call *call);

/* `from` is the call, whose arguments are read, or an object. */
#define TC_FROM(from)                                                                                                  \
    _Generic((from), tc_call *: tc_arguments, const tc_call *: tc_arguments, tc_value *: tc_same,                      \
        const tc_value *: tc_same)(from)

/* A member. It ends the call if the member is missing or has another type: the schema should require it. */
#define tc_string(from, name) tc_text_at(TC_FROM(from), name, false, TC_HERE).data
#define tc_text_of(from, name) tc_text_at(TC_FROM(from), name, true, TC_HERE)
#define tc_number(from, name) tc_number_at(TC_FROM(from), name, TC_HERE)
/* A whole number. It ends the call if the number has a fraction or does not fit: bound it in the schema. */
#define tc_integer(from, name) tc_integer_at(TC_FROM(from), name, TC_HERE)
#define tc_bool(from, name) tc_bool_at(TC_FROM(from), name, TC_HERE)
#define tc_array(from, name) tc_typed_at(TC_FROM(from), name, TC_ARRAY, TC_HERE)
#define tc_object(from, name) tc_typed_at(TC_FROM(from), name, TC_OBJECT, TC_HERE)

/* A member, or something else if it is missing or null. */
#define tc_string_or(from, name, other) (tc_has(from, name) ? tc_string(from, name) : (other))
#define tc_number_or(from, name, other) (tc_has(from, name) ? tc_number(from, name) : (other))
#define tc_integer_or(from, name, other) (tc_has(from, name) ? tc_integer(from, name) : (other))
#define tc_bool_or(from, name, other) (tc_has(from, name) ? tc_bool(from, name) : (other))

/* Whether there is a member that is not null. */
#define tc_has(from, name) tc_has_member(TC_FROM(from), name)
/* A member of any type, or NULL. */
#define tc_get(from, name) tc_member(TC_FROM(from), name)

/* NULL has the type of null. */
tc_type tc_type_of(const tc_value *value);
/* Items of an array, members of an object, bytes of a text; 0 for all others. */
size_t tc_length(const tc_value *value);
/* An item of an array or the value of a member of an object, or NULL. */
const tc_value *tc_at(const tc_value *value, size_t index);
/* The name of a member of an object, or NULL. */
const char *tc_name_at(const tc_value *object, size_t index);
/* What a value is. It ends the call if the value has another type. */
#define tc_as_string(value) tc_value_text(value, false, TC_HERE).data
#define tc_as_text(value) tc_value_text(value, true, TC_HERE)
#define tc_as_number(value) tc_value_number(value, TC_HERE)
#define tc_as_integer(value) tc_value_integer(value, TC_HERE)
#define tc_as_bool(value) tc_value_bool(value, TC_HERE)

/* Reads JSON. NULL if it cannot be read: it is not JSON, not UTF-8, or nests deeper than 127 levels. `*error` says why;
 * `error` may be NULL. */
tc_value *tc_parse(const char *data, size_t length, const char **error);
/* Writes JSON. NULL if the value cannot be written; `*error` says why; `error` may be NULL. */
const char *tc_write(const tc_value *value, const char **error);

tc_value *tc_make_null(void);
tc_value *tc_make_bool(bool value);
tc_value *tc_make_number(double value);
tc_value *tc_make_integer(int64_t value);
tc_value *tc_make_string(const char *text);
tc_value *tc_make_text(const char *data, size_t length);
tc_value *tc_make_array(void);
tc_value *tc_make_object(void);

/* Sets a member, whose value it replaces. */
#define tc_set(object, name, value) tc_set_at(object, name, value, TC_HERE)
#define tc_set_string(object, name, text) tc_set(object, name, tc_make_string(text))
#define tc_set_number(object, name, number) tc_set(object, name, tc_make_number(number))
#define tc_set_integer(object, name, number) tc_set(object, name, tc_make_integer(number))
#define tc_set_bool(object, name, value) tc_set(object, name, tc_make_bool(value))
/* Adds an item. */
#define tc_add(array, value) tc_add_at(array, value, TC_HERE)
#define tc_add_string(array, text) tc_add(array, tc_make_string(text))
#define tc_add_number(array, number) tc_add(array, tc_make_number(number))
#define tc_add_integer(array, number) tc_add(array, tc_make_integer(number))
#define tc_add_bool(array, value) tc_add(array, tc_make_bool(value))

/* ---- Endings ---- */

/* Success. A value that cannot be written as JSON (NaN, a text that is not UTF-8) becomes a failure that says so. */
tc_outcome tc_ok(const tc_value *value);
tc_outcome tc_ok_null(void);
tc_outcome tc_ok_bool(bool value);
tc_outcome tc_ok_number(double value);
tc_outcome tc_ok_integer(int64_t value);
tc_outcome tc_ok_string(const char *text);
tc_outcome tc_ok_text(const char *data, size_t length);
/* Success with more: a message for a person, further parts, or the wish that the model does not speak after it. */
tc_outcome tc_with_message(tc_outcome outcome, const char *message);
tc_outcome tc_with_text(tc_outcome outcome, const char *text);
tc_outcome tc_with_image(tc_outcome outcome, const char *mime_type, const void *data, size_t length);
tc_outcome tc_with_audio(tc_outcome outcome, const char *mime_type, const void *data, size_t length);
tc_outcome tc_with_link(tc_outcome outcome, const char *uri, const char *name);
tc_outcome tc_end_turn(tc_outcome outcome);

/* The tool's own failure: the model reads the message. */
tc_outcome tc_fail(const char *message);
/* A failure with more. `data` may be NULL. */
tc_outcome tc_fail_with(const char *message, const tc_value *data);
/* The same call may succeed after so many milliseconds. */
tc_outcome tc_retry_after(tc_outcome failure, uint64_t milliseconds);

/* A question to a person. The answer comes with a later call: tc_answer(). `options` and `state` may be NULL. */
tc_outcome tc_ask(const char *question, const tc_value *options, const tc_value *state);
/* The JSON Schema of the answer. */
tc_outcome tc_answer_schema(tc_outcome question, const char *schema);
/* Ends the agent's loop with a result. `result` may be NULL. */
tc_outcome tc_halt(const char *reason, const tc_value *result);

/* Ends the call at once as `handler_raised`, with this message and this place. */
#define tc_raise(message) tc_raise_at(message, TC_HERE)
/* Define TC_PLAIN_ABORT before the header if the source has functions of its own with this name. */
#ifndef TC_PLAIN_ABORT
#undef abort
#define abort() tc_raise_at("abort() was called", TC_HERE)
#endif

/* ---- The call ---- */

/* NULL where the caller did not say. */
const char *tc_session_id(const tc_call *call);
const char *tc_request_id(const tc_call *call);
const char *tc_thread_id(const tc_call *call);
const char *tc_run_id(const tc_call *call);
const char *tc_tenant(const tc_call *call);
const tc_value *tc_metadata(const tc_call *call);
/* The provider's id of the call. */
const char *tc_call_id(const tc_call *call);
/* 1 for the first attempt. */
uint32_t tc_attempt(const tc_call *call);
uint64_t tc_remaining_ms(const tc_call *call);
/* What the person answered to the question of an earlier call, and the state of that call. NULL: there was none. */
const tc_value *tc_answer(const tc_call *call);
const tc_value *tc_state(const tc_call *call);

/* ---- What every tool may use ---- */

typedef enum { TC_TRACE, TC_DEBUG, TC_INFO, TC_WARN, TC_ERROR } tc_level;

void tc_log(tc_level level, const char *message);
/* How far the call has come. `total` 0: not known. `message` may be NULL. */
void tc_progress(uint64_t done, uint64_t total, const char *message);
/* Whether the caller wants the call to end. */
bool tc_aborted(void);
/* A text as printf() writes it. */
char *tc_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Memory of zeros. It ends the call if there is none left. */
void *tc_alloc(size_t size);
/* From 0 to 1, without 1; rand() begins each call with the same number. */
double tc_random(void);

/* ---- What has to be granted: write it into TC_NEEDS ---- */

typedef enum {
    TC_NO_ERROR,
    TC_DENIED,
    TC_INVALID,
    TC_UNREACHABLE,
    TC_TIMEOUT,
    TC_OVER_BUDGET,
    TC_BROKEN,
    TC_INVALID_KEY,
    TC_OVER_QUOTA,
    TC_UNAVAILABLE,
    /* Of tc_invoke() alone: no call was made, or how the other tool ended. */
    TC_LIMIT,
    TC_FAILED,
    TC_ASKED_USER,
    TC_HALTED,
    TC_TOOL_ERROR,
    TC_REFUSED,
} tc_error_kind;

/* Why the host did not do it. `message` is for tc_fail(). The functions below return false then; `error` may be NULL. */
typedef struct {
    tc_error_kind kind;
    const char *message;
    /* Of tc_invoke(): the data of a tool that failed, or how it ended otherwise. NULL if there is none. */
    const tc_value *data;
} tc_error;

/* The name of a kind, as messages and other languages have it: `denied`, `failed`, `ask_user` and so on. */
const char *tc_error_name(tc_error_kind kind);

/* Keys and values that outlive the call. `value->data` is NULL if there is no such key. */
bool tc_kv_get(const char *key, tc_text *value, tc_error *error);
/* The same for JSON. `*value` is NULL if there is no such key. */
bool tc_kv_get_value(const char *key, tc_value **value, tc_error *error);
/* `ttl_ms` 0: until it is deleted. */
bool tc_kv_set(const char *key, const void *data, size_t length, uint64_t ttl_ms, tc_error *error);
bool tc_kv_set_value(const char *key, const tc_value *value, uint64_t ttl_ms, tc_error *error);
/* `*existed` tells whether there was one; it may be NULL. */
bool tc_kv_delete(const char *key, bool *existed, tc_error *error);
/* All keys that begin with `prefix`, an array of texts. */
bool tc_kv_list(const char *prefix, tc_value **keys, tc_error *error);

/* A secret that the host puts into a request. The tool never has its value. */
typedef struct {
    int32_t handle;
} tc_secret;

bool tc_secret_get(const char *name, tc_secret *secret, tc_error *error);
/* The value of a secret, which is granted rarely. */
bool tc_secret_reveal(const char *name, tc_text *value, tc_error *error);

typedef struct {
    const char *name, *value;
} tc_header;

/* A request. Only `url` is needed. */
typedef struct {
    /* NULL: GET. */
    const char *method;
    const char *url;
    const tc_header *headers;
    size_t header_count;
    /* NULL: no body. */
    const void *body;
    size_t body_length;
    /* NULL: no secret. */
    const tc_secret *secret;
    /* 0: what is left of the call. */
    uint64_t timeout_ms;
} tc_request;

/* What the server answered. Redirects are not followed. */
typedef struct {
    int status;
    const tc_header *headers;
    size_t header_count;
    tc_text body;
} tc_response;

/* Calls another tool of the host, with an object of arguments, or NULL for none, and gives its value. */
bool tc_invoke(const char *name, const tc_value *arguments, tc_value **value, tc_error *error);

bool tc_send(const tc_request *request, tc_response *response, tc_error *error);
/* The value of a header by its name in lower case, or NULL. */
const char *tc_response_header(const tc_response *response, const char *name);

/* ---- What the macros above use ---- */

const tc_value *tc_same(const tc_value *value);
const tc_value *tc_member(const tc_value *object, const char *name);
bool tc_has_member(const tc_value *object, const char *name);
const tc_value *tc_typed_at(const tc_value *object, const char *name, tc_type type, const tc_place *place);
tc_text tc_text_at(const tc_value *object, const char *name, bool with_nul, const tc_place *place);
double tc_number_at(const tc_value *object, const char *name, const tc_place *place);
int64_t tc_integer_at(const tc_value *object, const char *name, const tc_place *place);
bool tc_bool_at(const tc_value *object, const char *name, const tc_place *place);
tc_text tc_value_text(const tc_value *value, bool with_nul, const tc_place *place);
double tc_value_number(const tc_value *value, const tc_place *place);
int64_t tc_value_integer(const tc_value *value, const tc_place *place);
bool tc_value_bool(const tc_value *value, const tc_place *place);
void tc_set_at(tc_value *object, const char *name, const tc_value *value, const tc_place *place);
void tc_add_at(tc_value *array, const tc_value *value, const tc_place *place);
_Noreturn void tc_raise_at(const char *message, const tc_place *place);
_Noreturn void tc_assert_fail(const char *expression, const char *file, int line, const char *function);

#endif
