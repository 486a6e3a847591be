import { z } from "zod";

const form = z.object({ a: z.number().int(), b: z.string().email().optional(), c: z.discriminatedUnion("k", [z.object({ k: z.literal("x") })]).default({ k: "x" }) });

export const work = () => [
  form.parse({ a: 1 }), form.safeParse({ a: 1.5, b: "x" }).error.issues.map(({ path, code, message }) => `${path}: ${code}: ${message}`),
  z.toJSONSchema(form),
];
