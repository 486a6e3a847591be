// node build.mjs OUTPUT: the component of words.js, by componentize-js.
import { readFile, writeFile } from "node:fs/promises";
import { componentize } from "@bytecodealliance/componentize-js";

const [source, witWorld] = await Promise.all(["words.js", "words.wit"].map((name) => readFile(name, "utf8")));
const { component } = await componentize(source, { witWorld });
await writeFile(process.argv[2], component);
