import YAML from "yaml";

export const work = () => [
  YAML.parse("a: [1, 2]\nb: &x {c: 1}\nd: *x\ne: |\n  two\n  lines\nf: 2024-01-01\n"), YAML.stringify({ a: [1, { b: 2 }], c: "x: y" }),
  YAML.parseDocument("a: [").errors.map(({ code }) => code),
];
