import Ajv from "ajv";

export const work = () => {
  const check = new Ajv({ allErrors: true }).compile({
    type: "object", properties: { a: { type: "integer", minimum: 2 }, b: { pattern: "^x+$" } }, required: ["c"],
  });
  return [check({ a: 1, b: "y" }), check.errors.map(({ instancePath, message }) => `${instancePath}: ${message}`), check({ c: 1 })];
};
