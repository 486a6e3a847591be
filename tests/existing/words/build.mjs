// node build.mjs OUTPUT: the component of words.ts, by componentize-js. Node takes the types out.
import { readFile, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { componentize } from "@bytecodealliance/componentize-js";

const [source, witWorld] = await Promise.all(["words.ts", "words.wit"].map((name) => readFile(name, "utf8")));
const { component } = await componentize(stripTypeScriptTypes(source), { witWorld });
await writeFile(process.argv[2], component);
