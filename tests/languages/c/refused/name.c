// `t t` is not a tool name
#include <toolcell.h>

static tc_outcome greet(tc_call *call) {
    return tc_ok_string(tc_string(call, "name"));
}

TOOLCELL_TOOL("t t", "Has a name that no tool can have.", TC_JSON({"type": "object"}), greet)
