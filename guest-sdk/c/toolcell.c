/*
 * The SDK for tools in C: what `toolcell.h` declares.
 *
 * In: the bindings that wit-bindgen makes of the world `toolbox-with-grants`. Out: the exports of a tool.
 * Invariants: memory comes from an arena and is never freed, because a cell ends with its call; no function here calls
 * itself; what goes to the host is UTF-8, and JSON where it has to be.
 */
/* The build gives authors the functions of memory.inc in place of these. */
#undef malloc
#undef calloc
#undef realloc
#undef aligned_alloc
#undef posix_memalign
#undef strdup
#undef strndup

#include "toolcell.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "generated/toolbox_with_grants.h"

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

/* One translation unit: what the parts share is static, and an author's functions cannot clash with it. */
#include "memory.inc"
#include "values.inc"
#include "json.inc"
#include "endings.inc"
#include "exports.inc"
#include "host.inc"
