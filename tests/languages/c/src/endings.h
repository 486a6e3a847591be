/* Endings that are in a file of their own, so that their message names it. */
#include <toolcell.h>

tc_outcome fail(tc_call *call);
