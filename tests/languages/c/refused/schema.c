// its `parameters` have the type "strng", but arguments are always an object
#include <toolcell.h>

static tc_outcome greet(tc_call *call) {
    return tc_ok_string(tc_string(call, "name"));
}

TOOLCELL_TOOL("greet", "Has parameters of a type that does not exist.", TC_JSON({"type": "strng"}), greet)
