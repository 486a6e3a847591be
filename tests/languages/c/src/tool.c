#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "endings.h"

/* What was said about why the host did not do it is for the model. */
#define TRY(asked, error) \
    if (!(asked)) return tc_fail((error).message)

static tc_outcome value(tc_call *call) {
    tc_value *result = tc_make_object(), *list = tc_make_array();
    tc_add_integer(list, 1);
    tc_add_number(list, 2.5);
    tc_add_string(list, "three");
    tc_set(result, "list", list);
    tc_set(result, "nothing", tc_make_null());
    tc_set_bool(result, "yes", true);
    return tc_ok(result);
}

static tc_outcome nothing(tc_call *call) {
    return tc_ok_null();
}

static tc_outcome text(tc_call *call) {
    return tc_with_text(tc_with_message(tc_ok_string("text"), "a message"), "a part");
}

/* C awaits nothing: the squares are made one after the other. */
static tc_outcome promise(tc_call *call) {
    return tc_ok_string(tc_format("%d,%d,%d", 1 * 1, 2 * 2, 3 * 3));
}

static tc_outcome failure(tc_call *call) {
    tc_value *data = tc_make_object();
    tc_set_string(data, "city", "Atlantis");
    return tc_retry_after(tc_fail_with("no such city", data), 1500);
}

static tc_outcome ask(tc_call *call) {
    const tc_value *answer = tc_answer(call);
    if (answer == NULL) {
        tc_value *options = tc_make_array();
        tc_add_string(options, "a");
        tc_add_string(options, "b");
        return tc_ask("Which one?", options, tc_make_integer(7));
    }
    tc_value *both = tc_make_array();
    tc_add(both, answer);
    tc_add(both, tc_state(call));
    return tc_ok(both);
}

static tc_outcome halt(tc_call *call) {
    tc_value *result = tc_make_object();
    tc_set_integer(result, "total", 3);
    return tc_halt("done", result);
}

static tc_outcome look_up(tc_call *call) {
    tc_error error;
    tc_secret key;
    tc_response response;
    if (!tc_secret_get("api_key", &key, &error)) return tc_fail(error.message);
    tc_request request = {.url = "https://api.example.com/v1/city?q=Bern", .secret = &key};
    if (!tc_send(&request, &response, &error)) return tc_fail(error.message);
    tc_value *city = tc_parse(response.body.data, response.body.length, &error.message);
    if (city == NULL) return tc_fail(error.message);
    tc_set_integer(city, "status", response.status);
    return tc_ok(city);
}

static tc_outcome denied(tc_call *call) {
    tc_error error;
    tc_response response;
    TRY(tc_send(&(tc_request){.url = "https://elsewhere.example.com/"}, &response, &error), error);
    return tc_ok_integer(response.status);
}

static tc_outcome count(tc_call *call) {
    tc_error error;
    tc_value *number;
    TRY(tc_kv_get_value("counters/calls", &number, &error), error);
    int64_t following = number == NULL ? 1 : tc_as_integer(number) + 1;
    TRY(tc_kv_set_value("counters/calls", tc_make_integer(following), 0, &error), error);
    return tc_ok_integer(following);
}

static tc_outcome invoked(const char *tool, bool is_caught) {
    tc_error error;
    tc_value *value, *arguments = tc_make_object(), *caught = tc_make_array();
    tc_set_string(arguments, "name", "Bern");
    if (tc_invoke(tool, arguments, &value, &error)) return tc_ok(value);
    if (!is_caught) return tc_fail(error.message);
    tc_add_string(caught, tc_error_name(error.kind));
    tc_add(caught, error.data == NULL ? tc_make_null() : error.data);
    return tc_ok(caught);
}

static tc_outcome invoke(tc_call *call) {
    return invoked("find_place", false);
}

static tc_outcome invoke_caught(tc_call *call) {
    return invoked("find_place", true);
}

static tc_outcome loop(tc_call *call) {
    tc_error error;
    tc_value *value, *arguments = tc_make_object();
    tc_set_string(arguments, "how", "loop");
    TRY(tc_invoke("endings", arguments, &value, &error), error);
    return tc_ok(value);
}

static tc_outcome invoke_denied(tc_call *call) {
    return invoked("delete_all", true);
}

/* The JSON that a case puts under a key, as the SDK reads and writes it. */
static tc_outcome parse(tc_call *call) {
    tc_error error;
    tc_value *value;
    TRY(tc_kv_get_value("counters/json", &value, &error), error);
    return tc_ok(value);
}

static tc_outcome mixed(tc_call *call) {
    return tc_with_message(tc_fail("a failure"), "a message");
}

/* Keys as bytes: two are set, one is deleted, and the others are listed. */
static tc_outcome keys(tc_call *call) {
    tc_error error;
    tc_text read;
    tc_value *names;
    bool existed, missing;
    TRY(tc_kv_set("counters/a", "1\0002", 3, 60000, &error), error);
    TRY(tc_kv_set("counters/b", "", 0, 0, &error), error);
    TRY(tc_kv_get("counters/a", &read, &error), error);
    TRY(tc_kv_delete("counters/b", &existed, &error), error);
    TRY(tc_kv_delete("counters/b", &missing, &error), error);
    TRY(tc_kv_list("counters/", &names, &error), error);
    if (read.length != 3 || memcmp(read.data, "1\0002", 3) != 0) return tc_fail("the bytes are others");
    tc_value *result = tc_make_object();
    tc_set(result, "names", names);
    tc_set_bool(result, "existed", existed);
    tc_set_bool(result, "missing", missing);
    return tc_ok(result);
}

static tc_outcome progress(tc_call *call) {
    tc_progress(1, 2, "half");
    return tc_ok_null();
}

static tc_outcome waits(tc_call *call) {
    tc_log(TC_WARN, "waiting");
    tc_progress(1, 2, "half");
    while (!tc_aborted()) {
        for (volatile int turns = 0; turns < 1000000; turns++) {}
    }
    return tc_ok_string("stopped");
}

static tc_outcome reveal(tc_call *call) {
    tc_error error;
    tc_text value;
    TRY(tc_secret_reveal("password", &value, &error), error);
    return tc_ok_integer((int64_t)value.length);
}

static tc_outcome reveal_denied(tc_call *call) {
    tc_error error;
    tc_text value;
    TRY(tc_secret_reveal("elsewhere", &value, &error), error);
    return tc_ok_null();
}

static tc_outcome clock_of_the_case(tc_call *call) {
    char text[32];
    time_t now = time(NULL);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return tc_ok_string(text);
}

static tc_outcome draw(tc_call *call) {
    return tc_ok_number(tc_random());
}

static tc_outcome throws_text(tc_call *call) {
    tc_raise("just a text");
}

/* A value that contains itself nests deeper than JSON may. */
static tc_outcome circle(tc_call *call) {
    tc_value *list = tc_make_array();
    tc_add(list, list);
    return tc_ok(list);
}

/* C has no large integers of its own: the number that JSON lacks is NaN. */
static tc_outcome bigint(tc_call *call) {
    return tc_ok_number(NAN);
}

static tc_outcome bytes(tc_call *call) {
    return tc_ok_text("\xff\xfe", 2);
}

static tc_outcome nan_member(tc_call *call) {
    tc_value *result = tc_make_object();
    tc_set_number(result, "ratio", NAN);
    return tc_ok(result);
}

static tc_outcome infinite(tc_call *call) {
    tc_value *list = tc_make_array();
    tc_add_number(list, INFINITY);
    return tc_ok(list);
}

/* C's strings are bytes: what is not Unicode are bytes that are not UTF-8. */
static tc_outcome surrogate(tc_call *call) {
    tc_value *list = tc_make_array();
    tc_add_string(list, "\xed\xa0\x80");
    return tc_ok(list);
}

static tc_outcome nested(int depth) {
    tc_value *value = tc_make_array();
    while (--depth > 0) {
        tc_value *list = tc_make_array();
        tc_add(list, value);
        value = list;
    }
    return tc_ok(value);
}

static tc_outcome deepest(tc_call *call) {
    return nested(127);
}

static tc_outcome deep(tc_call *call) {
    return nested(128);
}

static tc_outcome details(tc_call *call) {
    return tc_fail_with("no such city", tc_make_number(NAN));
}

static tc_outcome half(tc_call *call) {
    return tc_fail("no such \xff" "city");
}

__attribute__((noinline)) static int recurse(volatile int *above) {
    volatile int own[64] = {*above + 1};
    return own[0] < 0 ? 0 : recurse(own) + own[0];
}

static tc_outcome recursion(tc_call *call) {
    return tc_ok_integer(recurse(&(volatile int){0}));
}

static tc_outcome memory(tc_call *call) {
    for (;;) memset(tc_alloc(1 << 20), 'x', 1 << 20);
}

/* The result of malloc is not looked at. */
static tc_outcome unchecked(tc_call *call) {
    for (;;) memset(malloc(1 << 20), 'x', 1 << 20);
}

static tc_outcome aligned(tc_call *call) {
    for (;;) memset(aligned_alloc(64, 1 << 20), 'x', 1 << 20);
}

static tc_outcome memaligned(tc_call *call) {
    for (void *memory = NULL;;) {
        posix_memalign(&memory, 64, 1 << 20);
        memset(memory, 'x', 1 << 20);
    }
}

static tc_outcome misaligned(tc_call *call) {
    void *memory = NULL;
    return tc_ok_bool(posix_memalign(&memory, 3, 1 << 20) == EINVAL && aligned_alloc(3, 1 << 20) != NULL);
}

static tc_outcome assertion(tc_call *call) {
    assert(tc_attempt(call) > 1000);
    return tc_ok_null();
}

static tc_outcome aborted(tc_call *call) {
    abort();
}

static tc_outcome missing(tc_call *call) {
    return tc_ok_string(tc_string(call, "city"));
}

/* What is printed is in the log of the call. */
static tc_outcome prints(tc_call *call) {
    printf("on standard output, without an end");
    return tc_ok_null();
}

/* Reads memory that the tool does not have. */
static tc_outcome outside(tc_call *call) {
    return tc_ok_integer(*(volatile const char *)(uintptr_t)0xfffffff0u);
}

static const struct {
    const char *name;
    tc_outcome (*end)(tc_call *call);
} ENDINGS[] = {
    {"value", value}, {"nothing", nothing}, {"text", text}, {"promise", promise}, {"failure", failure}, {"ask", ask},
    {"halt", halt}, {"read", look_up}, {"denied", denied}, {"count", count},
    {"invoke", invoke}, {"invoke_caught", invoke_caught}, {"invoke_denied", invoke_denied}, {"loop", loop}, {"keys", keys},
    {"progress", progress}, {"waits", waits}, {"reveal", reveal}, {"reveal_denied", reveal_denied},
    {"clock", clock_of_the_case}, {"random", draw}, {"throws", fail}, {"throws_text", throws_text}, {"circle", circle},
    {"bigint", bigint}, {"bytes", bytes}, {"recursion", recursion}, {"memory", memory}, {"malloc", unchecked}, {"assert", assertion},
    {"aligned", aligned}, {"memaligned", memaligned}, {"misaligned", misaligned},
    {"parse", parse}, {"mixed", mixed}, {"abort", aborted}, {"missing", missing}, {"prints", prints},
    {"outside", outside}, {"nan", nan_member}, {"infinite", infinite}, {"surrogate", surrogate}, {"deepest", deepest},
    {"deep", deep}, {"details", details}, {"half", half},
};
enum { COUNT = sizeof ENDINGS / sizeof *ENDINGS };

static size_t index_of(const char *how) {
    size_t index = 0;
    while (index < COUNT && strcmp(ENDINGS[index].name, how) != 0) index++;
    return index;
}

static void validate(tc_call *call, tc_value *faults) {
    const char *how = tc_string(call, "how");
    if (index_of(how) == COUNT) tc_add_string(faults, tc_format("there is no ending %s", how));
}

static tc_outcome end(tc_call *call) {
    return ENDINGS[index_of(tc_string(call, "how"))].end(call);
}

TOOLCELL_TOOL("endings", "Ends a call in each of the ways in which a call can end.", TC_JSON({
    "type": "object",
    "properties": {"how": {"type": "string"}},
    "required": ["how"],
    "additionalProperties": false
}), end, .validate = validate, TC_NEEDS(
    {"http", "GET https://api.example.com/v1", "to look something up"},
    {"secret", "api_key", "to authenticate there"},
    {"reveal", "password", "to measure it"},
    {"kv", "write counters/*", "to count"},
    {"invoke", "find_place", "to find places"},
    {"invoke", "endings", "to call itself"}))
