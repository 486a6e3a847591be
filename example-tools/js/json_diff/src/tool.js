import { tool, ToolFailure } from "toolcell";
import { diff } from "./diff.js";
import { PatchError, patched } from "./patch.js";

const patch = {
  type: "array",
  description: "A JSON Patch (RFC 6902)",
  items: {
    type: "object",
    properties: {
      op: { enum: ["add", "remove", "replace", "move", "copy", "test"] },
      path: { type: "string", description: "A JSON Pointer, for example /lines/0/price" },
      from: { type: "string", description: "Where `move` and `copy` take the value from" },
      value: { description: "The value of `add`, `replace` and `test`" },
    },
    required: ["op", "path"],
  },
};

export const jsonDiff = tool({
  name: "json_diff",
  description: "Compares two JSON values. The result is the JSON Patch (RFC 6902) that makes the second of the first; it is empty if they are equal.",
  parameters: { type: "object", properties: { before: {}, after: {} }, required: ["before", "after"] },
  output: patch,
  readOnly: true,
  idempotent: true,
  handler: ({ before, after }) => diff(before, after),
});

export const jsonPatch = tool({
  name: "json_patch",
  description: "Applies a JSON Patch (RFC 6902) to a JSON value and returns the new value. If one operation fails, nothing is changed, and the error names it.",
  parameters: { type: "object", properties: { document: {}, patch }, required: ["document", "patch"] },
  readOnly: true,
  idempotent: true,
  handler: ({ document, patch }) => {
    try {
      return patched(document, patch);
    } catch (error) {
      if (error instanceof PatchError) throw new ToolFailure(error.message, { data: { operation: error.operation } });
      throw error;
    }
  },
});
