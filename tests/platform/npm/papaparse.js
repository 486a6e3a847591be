import Papa from "papaparse";

export const work = () => [
  Papa.parse("a,b\n1,\"x,y\"\n2,\"é\"\"q\"\n", { header: true, dynamicTyping: true }),
  Papa.unparse([{ a: 1, b: "q\"r" }]),
];
