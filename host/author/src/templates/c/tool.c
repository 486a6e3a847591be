#include <toolcell.h>

static tc_outcome greet(tc_call *call) {
    return tc_ok_string(tc_format("Hello, %s!", tc_string(call, "name")));
}

TOOLCELL_TOOL("greet", "Greets a person by name.", TC_JSON({
    "type": "object",
    "properties": {"name": {"type": "string", "description": "Who to greet, for example `Ada`."}},
    "required": ["name"],
    "additionalProperties": false
}), greet, .read_only = true, .idempotent = true)
