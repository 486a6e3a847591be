// The types of arguments that `parameters` gives. `tsc` refuses this file if a line is refused that should not be, and if a line
// below `@ts-expect-error` is accepted.
import { type FromSchema, tool } from "toolcell";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Takes a schema as `tool` takes it, and the type that is expected. */
const of = <const S>(_schema: S) => ({ is: <T>(_same: Same<FromSchema<S>, T>) => {} });

of({ type: "string" }).is<string>(true);
of({ type: "integer", minimum: 1 }).is<number>(true);
of({ type: "number" }).is<number>(true);
of({ type: "boolean" }).is<boolean>(true);
of({ type: "null" }).is<null>(true);
of({ type: ["string", "null"] }).is<string | null>(true);
of({ type: "string", enum: ["m", "ft"] }).is<"m" | "ft">(true);
of({ enum: ["m", 1, null] }).is<"m" | 1 | null>(true);
of({ const: 3 }).is<3>(true);
of({ const: { at: [1] } }).is<{ at: [1] }>(true);
of({ type: "array", items: { type: "string" } }).is<string[]>(true);
of({ type: "array" }).is<unknown[]>(true);
of({ anyOf: [{ type: "string" }, { type: "array", items: { type: "number" } }] }).is<string | number[]>(true);
of({ oneOf: [{ type: "string" }, { type: "null" }] }).is<string | null>(true);
of({ type: "object" }).is<{ [name: string]: unknown }>(true);
of({ type: "object", additionalProperties: { type: "number" } }).is<{ [name: string]: number }>(true);
of({ type: "object", properties: {} }).is<{}>(true);
of({ description: "anything" }).is<unknown>(true);
of({ $ref: "#/$defs/place" }).is<unknown>(true);
of({ type: "object", properties: { at: { type: "string" }, zoom: { type: "integer" } }, required: ["at"] }).is<{
  at: string;
  zoom?: number;
}>(true);
// Branches that only say what is required leave the type as it is.
of({ type: "object", properties: { a: { type: "string" } }, anyOf: [{ required: ["a"] }] }).is<{ a?: string }>(true);
// @ts-expect-error -- the comparison itself can fail
of({ type: "string" }).is<number>(true);

const head = { name: "find", description: "Finds." };
const parameters = {
  type: "object",
  properties: {
    name: { type: "string" },
    unit: { type: "string", enum: ["m", "ft"] },
    near: { type: ["object", "null"], properties: { at: { type: "array", items: { type: "number" } } }, required: ["at"] },
    limit: { type: "integer" },
  },
  required: ["name", "unit", "near"],
  additionalProperties: false,
} as const;

tool({ ...head, parameters, handler: ({ name, limit = 10 }) => name.slice(limit) });
tool({ ...head, parameters, handler: async ({ near }) => near?.at[0]?.toFixed(1) ?? null });
tool({ ...head, parameters, validate: ({ unit }) => (unit === "m" ? [] : ["metres only"]), handler: () => null });
tool({ ...head, parameters, handler: ({ name }: { name: string }, context) => name + context.callId });
// The schema within the definition needs no `as const`.
tool({
  ...head,
  parameters: { type: "object", properties: { sort: { enum: ["up", "down"] } }, required: ["sort"] },
  handler: ({ sort }) => ({ up: 1, down: -1 })[sort],
});
tool({ ...head, handler: ({ name }) => name.anything });
tool<{ name: string }>({ ...head, parameters: { type: "object" }, handler: ({ name }) => name.length });

// @ts-expect-error -- no such member
tool({ ...head, parameters, handler: ({ nam }) => nam });
// @ts-expect-error -- may be absent
tool({ ...head, parameters, handler: ({ limit }) => limit.toFixed() });
// @ts-expect-error -- may be null
tool({ ...head, parameters, handler: ({ near }) => near.at });
// @ts-expect-error -- never this value
tool({ ...head, parameters, handler: ({ unit }) => unit === "km" });
// @ts-expect-error -- another type than the schema says
tool({ ...head, parameters, handler: ({ name }: { name: number }) => name });
// @ts-expect-error -- a member that the schema does not require
tool({ ...head, parameters, handler: ({ limit }: { limit: number }) => limit });
// @ts-expect-error -- no such member of the type that is given
tool<{ name: string }>({ ...head, handler: ({ title }) => title });
// @ts-expect-error -- a definition has a description
tool({ name: "find", parameters, handler: () => null });
