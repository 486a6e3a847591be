import { tool } from "toolcell";

export default tool({
  name: "greet",
  description: "Greets a person by name.",
  parameters: {
    type: "object",
    properties: { name: { type: "string", description: "Who to greet, for example `Ada`." } },
    required: ["name"],
    additionalProperties: false,
  },
  readOnly: true,
  idempotent: true,
  handler: ({ name }) => `Hello, ${name}!`,
});
