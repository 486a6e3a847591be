// The same types in JavaScript, where editors infer them.
import { tool } from "toolcell";

export const find = tool({
  name: "find",
  description: "Finds.",
  parameters: { type: "object", properties: { name: { type: "string" }, limit: { type: "integer" } }, required: ["name"] },
  handler: ({ name, limit }) => name.slice(limit ?? 0),
});
export const lost = tool({
  name: "lose",
  description: "Loses.",
  parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  // @ts-expect-error -- a text has no such method
  handler: ({ name }) => name.toFixed(),
});
const shared = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
// Without `as const` the types of a schema elsewhere are not known.
export const open = tool({ name: "open", description: "Opens.", parameters: shared, handler: ({ name }) => name.anything });
