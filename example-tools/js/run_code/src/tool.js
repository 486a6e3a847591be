import { invoke, output, settled, tool, ToolFailure, unhandledRejections } from "toolcell";

// The code may replace the globals, and what is told about its end does not depend on them.
const { Error, Function, Object, String } = globalThis;
const { stringify } = JSON;
const AsyncFunction = (async () => {}).constructor;
/** Where an error is in the code. The engine writes two lines before the body of a function that it makes from a text. */
const PLACE = /^ +at .*<input>:(\d+)/m;
const LINES_BEFORE = 2;
/** What JavaScript itself asks an object for, besides what every object has. */
const NO_TOOLS = ["then", "toJSON"];
const EVERY_OBJECT = Object.prototype;

/** `tools.NAME({ … })` calls the tool NAME. */
const tools = new Proxy(Object.freeze({}), {
  get: (_, name) => {
    if (typeof name === "symbol" || NO_TOOLS.includes(name)) return undefined;
    return name in EVERY_OBJECT ? EVERY_OBJECT[name] : (...given) => call(name, given);
  },
});
const call = async (name, [args = {}, ...more]) => {
  if (args === null || typeof args !== "object" || Array.isArray(args) || more.length > 0) {
    throw new TypeError(`tools.${name} takes one object of arguments, for example tools.${name}({ name: "value" })`);
  }
  try {
    return await invoke(name, args);
  } catch (error) {
    error.message = `tools.${name}: ${error.message}`;
    throw error;
  }
};

/** The engine puts the code between braces and parses the whole, so that the code could close them and go on. */
const checkBraces = (code) => {
  try {
    new Function(`async function run() {\n${code}\n}`);
  } catch {
    throw new ToolFailure("SyntaxError: the code has a `}` that closes no brace of its own");
  }
};

/** What the model can repair: the error, and the line of its code. */
const failure = (error, code) => {
  if (!(error instanceof Error)) return new ToolFailure(`the code threw a value that is not an Error: ${shown(error)}`);
  const found = PLACE.exec(error.stack ?? "");
  const line = found ? Math.min(Math.max(found[1] - LINES_BEFORE, 1), code.split("\n").length) : undefined;
  const told = error instanceof ToolFailure ? error.message : `${error.name}: ${error.message}`;
  const { kind } = error;
  const data = line === undefined && kind === undefined && error.data === undefined ? undefined : { line, kind, data: error.data };
  const { retryable, retryAfterMs } = error;
  return new ToolFailure(line === undefined ? told : `line ${line} of the code: ${told}`, { data, retryable, retryAfterMs });
};
const shown = (value) => {
  try {
    return stringify(value) ?? String(value);
  } catch {
    return typeof value;
  }
};

export default tool({
  name: "run_code",
  description:
    "Runs JavaScript that calls other tools, and returns its result. Use it where several calls depend on each other, " +
    "or where only a part of their results matters: one run takes the place of many turns. The code is the body of an " +
    "async function. `await tools.NAME({ … })` calls the tool NAME with these arguments and gives its value; it throws " +
    "if the tool fails. Return a JSON value, for example: `const place = await tools.find_place({ name: \"Bern\" }); " +
    "return place.at;`. There is no network, no file and no package. An error names the line to correct.",
  parameters: {
    type: "object",
    properties: {
      code: { type: "string", description: "The body of an async function in JavaScript", minLength: 1, maxLength: 100000 },
    },
    required: ["code"],
    additionalProperties: false,
  },
  // Which tools these are is for the operator to say, with the grant `invoke`.
  needs: [{ kind: "invoke", pattern: "*", reason: "to call the tools that the code names" }],
  handler: async ({ code }) => {
    try {
      const run = new AsyncFunction("tools", "console", code);
      checkBraces(code);
      const value = await settled(run(tools, console));
      // What is not awaited is waited for as well, so that no failure is lost.
      const lost = await unhandledRejections();
      if (lost.length > 0) throw lost[0];
      // As a value: what the code returns is never one of the endings of `toolcell`.
      return output(value);
    } catch (error) {
      throw failure(error, code);
    }
  },
});
