// The second part of the module `toolcell`: what the runtime asks.
const MAX_DEPTH = 127, MAX_CAUSES = 5;
// What JSON writes as `{}`, whatever it contains, if it has no properties of its own.
const OPAQUE = new Set(["Map", "Set", "WeakMap", "WeakSet", "Map Iterator", "Set Iterator", "Array Iterator", "Generator",
  "AsyncGenerator", "Promise", "RegExp", "ArrayBuffer", "DataView", "Error", "DOMException", "Request", "Response", "Headers", "Blob",
  "File", "FormData", "ReadableStream", "URLSearchParams"].map((name) => `[object ${name}]`));
// A method is made when it is read first: here that is in the snapshot, and not in each call.
const { toString: tag } = Object.prototype, { includes } = String.prototype;
const transparent = (_, value) => {
  if (typeof value === "bigint") return 0;
  const type = typeof value === "object" && value !== null ? tag.call(value) : "";
  if (OPAQUE.has(type) && namesOf(value).length === 0) wrong(`the type ${type.slice(8, -1)} has no JSON form`);
  return value;
};
// For `stringify`: refuses what JSON would write as something else, and what the host would refuse.
const checked = () => {
  const depths = new Map();
  return function (name, value) {
    if (typeof value === "bigint") return marked(value);
    if (typeof value === "number" && !(value - value === 0)) wrong(`a number in it is ${value === value ? "infinite" : "NaN"}`);
    if (!name.isWellFormed() || (typeof value === "string" && !value.isWellFormed())) wrong("a text in it is not Unicode: it has half of a surrogate pair");
    if (typeof value === "object" && value !== null) {
      const depth = (depths.get(this) ?? 0) + 1;
      if (depth > MAX_DEPTH) wrong(`it nests deeper than ${MAX_DEPTH} levels`);
      depths.set(value, depth);
    }
    return value;
  };
};
const { isDeep, plainJson } = runtime;
// Whether the checks of every value, which cost more than all else in a small call, may refuse what has this text.
const isDoubtful = (text) => text === undefined || includes.call(text, "null") || includes.call(text, "\\ud") || (text.length > MAX_DEPTH && isDeep(text, MAX_DEPTH));
// The text, or why there is none.
const tried = (value) => {
  try {
    let text = plainJson(value);
    if (isDoubtful(text)) {
      const again = unmarked(stringify(value, checked()));
      text ??= again;
    }
    // To look at the type of every object would cost thousands of instructions each, and this costs so many once.
    if (typeof value === "object" && text !== undefined && value !== null && includes.call(text, "{}")) stringify(value, transparent);
    return text === undefined && value !== undefined ? { problem: `the type ${typeof value} has no JSON form` } : { text: text ?? "null" };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { problem: error.message };
  }
};
const written = (what, value) => {
  const { text, problem } = tried(value);
  if (problem !== undefined) throw new ToolFailure(`the tool's ${what} cannot be written as JSON: ${problem}`);
  return text;
};
const optional = (what, value) => (value === undefined ? undefined : written(what, value));

// A text that is the value of a success, a list with the JSON of one, or an object.
const ending = (value) => {
  if (typeof value === "string" && value.isWellFormed()) return value;
  if (value === undefined || value === null) return ["null"];
  if (value instanceof ToolFailure) return failure(value);
  if (!(value instanceof Ending)) return [written("result", value)];
  const { kind } = value;
  if (kind === "ask_user") {
    const [options, answerSchema, state] = ["options", "answerSchema", "state"].map((name) => optional(name, value[name]));
    return { kind, question: words(value.question), options, answerSchema, state };
  }
  if (kind === "halt") return { kind, reason: words(value.reason), result: written("result", value.result) };
  const message = value.message === undefined ? undefined : words(value.message);
  return { kind, value: written("result", value.value), message, parts: value.parts?.map(part), endTurn: value.endTurn };
};
// What a part has, by its type.
const PART = { __proto__: null, text: ["text"], image: ["mimeType", "data"], audio: ["mimeType", "data"], resource_link: ["uri"] };
const part = (from) => {
  if (typeof from === "string") return { type: "text", text: words(from) };
  const fields = PART[from?.type] ?? wrong(`output(): the type of a part is ${namesOf(PART).join(", ")}, not ${from?.type}`);
  for (const field of fields) {
    const given = from?.[field], isBytes = field === "data";
    // A text would be sent as its own bytes, also if it is base64.
    const isFitting = isBytes ? given instanceof ArrayBuffer || ArrayBuffer.isView(given) : typeof given === "string";
    if (!isFitting) wrong(`output(): a part of the type ${from?.type} has \`${field}\`, which is ${isBytes ? "a Uint8Array" : "a text"}`);
  }
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, name === "data" ? asBytes(value) : wellFormed(value)]));
};
// A failure always leaves the tool: details that cannot be written become a remark in its message.
const failure = ({ message, data, retryable, retryAfterMs }) => {
  const { text, problem } = data === undefined ? {} : tried(data);
  const remark = problem === undefined ? "" : ` (its details cannot be written as JSON: ${problem})`;
  const after = +(retryAfterMs ?? NaN), mayRetry = retryable === undefined || retryable === null ? undefined : !!retryable;
  // A time that is no number is left out: 0 would mean at once.
  return { kind: "error", message: words(message) + remark, data: text, retryable: mayRetry, retryAfterMs: after - after === 0 ? after : undefined };
};
// Whether there can be a rejected promise that nothing handles, or work that makes one. Mostly there is neither, and to wait for
// the end of all work would cost as much as a small handler.
const { isBusy } = runtime;
const isAwaiting = () => awaited.length > 0 || waiting.length > 0 || flights.size > 0;
const isLeft = () => isAwaiting() || isBusy();
const find = (name) => tools.get(name) ?? wrong(`this component has no tool named \`${name}\``);
// `await` reads `then`; a proxy may have it without saying so.
const isAwaited = (value) => typeof value === "function" || (typeof value === "object" && value !== null && (value instanceof Promise || value.then !== undefined));
// The outcome of an error of the author's code. One that is no outcome is thrown again.
const failed = (error) => {
  log(host.unhandled());
  if (error instanceof Unhandled && error.reason instanceof ToolFailure) {
    log([error.reason]);
    return failure(error.reason);
  }
  if (error instanceof ToolFailure) return failure(error);
  throw error;
};
// The rest of a call whose handler returned a promise, or left work behind.
const executed = async (returned, made) => {
  try {
    made ??= ending(await returned);
    isEnding = true;
    if (isLeft()) handled(await unhandledRejections());
    return made;
  } catch (error) {
    return failed(error);
  }
};

runtime.answers = {
  describe: () => {
    if (tools.size === 0) wrong("no tool was made: call `tool({ name, description, handler })` at the top of the module");
    const flag = Boolean;
    return stringify([...tools.values()].map((from) => ({
      name: from.name, description: from.description, parameters: from.parameters, output: from.output,
      attributes: from.attributes ?? {}, readOnly: flag(from.readOnly), idempotent: flag(from.idempotent),
      destructive: flag(from.destructive), openWorld: flag(from.openWorld), validates: flag(from.validate),
      hides: flag(from.visible), maxExecutionMs: from.maxExecutionMs, needs: from.needs ?? [],
    })));
  },
  // The modules are evaluated, and no work is left.
  loaded() {
    if (Date.now === nowWhileLoading) Date.now = plainNow;
    handled(host.unhandled());
  },
  warnings: () => stringify([...warnings]),
  exact: (text) => exactJson(text),
  validate: async (name, args, isText) => {
    isEnding = false;
    let given;
    try {
      given = argumentsOf(find(name), args, isText);
    } catch (error) {
      return { faults: [words(error.message)] };
    }
    const faults = await find(name).validate(given);
    isEnding = true;
    if (isLeft()) handled(await unhandledRejections());
    return { faults: [faults ?? []].flat().map(words) };
  },
  visible: async (name, context) => {
    isEnding = false;
    const visible = Boolean(await find(name).visible(context));
    isEnding = true;
    if (isLeft()) handled(await unhandledRejections());
    return { visible };
  },
  // The outcome, or a promise of it. Most calls need no promise, which costs as much as a small handler.
  execute: (name, args, isText, context) => {
    isEnding = false;
    try {
      const from = find(name);
      const returned = from.handler(argumentsOf(from, args, isText), context);
      // Nothing can change a text; the runtime asks itself whether a job is left.
      if (typeof returned === "string" && returned.isWellFormed() && !isAwaiting()) return returned;
      if (isLeft() || isAwaited(returned)) return executed(returned);
      const made = ending(returned);
      isEnding = true;
      return isLeft() ? executed(undefined, made) : made;
    } catch (error) {
      return failed(error);
    }
  },
  // The rest of a call that made a text and left jobs.
  rest: (made) => executed(undefined, made),
  // No work is left. Tells whether a promise was settled, so that there is new work.
  idle: () => {
    if (step()) return true;
    const rejects = awaited.splice(0);
    for (const reject of rejects) reject(new ToolFailure("the promise never settles: no work is left that could resolve it"));
    if (rejects.length > 0) return true;
    const resolves = waiting.splice(0);
    const reasons = resolves.length > 0 ? host.unhandled() : [];
    for (const resolve of resolves) resolve(reasons);
    return resolves.length > 0;
  },
};

// What a promise was rejected with that nothing handles.
class Unhandled {
  constructor(reason) {
    this.reason = reason;
  }
}
// The first one ends the call, the others are told.
const handled = (reasons) => {
  if (reasons.length === 0) return;
  log(reasons.slice(1));
  throw new Unhandled(reasons[0]);
};
const unhandled = (reason) => `a promise was rejected, and nothing handles it: ${shown(reason)}`;
const log = (reasons) => {
  if (!host.isInCell()) return;
  for (const reason of reasons.slice(0, MAX_CAUSES)) host.log(4, unhandled(reason));
  if (reasons.length > MAX_CAUSES) host.log(4, `${reasons.length - MAX_CAUSES} more promises were rejected, and nothing handles them`);
};

// Lines of a stack that are not the author's: those of this module, of QuickJS, of a text that is parsed, and those that the
// builder writes around a CommonJS module.
const NOT_AUTHORED = /\((toolcell|native)[:)]|at native| toolcell:| <input>:|\/\/import:|at \$(get|require|scope) \(/;
// An error for a person: its name and message, the lines of its stack that are the author's, and the errors that caused it.
const described = (error, depth = 0) => {
  if (error instanceof Unhandled) return words(unhandled(error.reason));
  if (!(error instanceof Error)) return words(`a value that is not an Error was thrown: ${shown(error)}`);
  const first = errorText.call(error), stack = String(error.stack ?? "");
  const lines = (stack.startsWith(first) ? stack.slice(first.length) : stack).split("\n").filter((line) => line.trim() !== "" && !NOT_AUTHORED.test(line));
  const causes = [error.cause, error instanceof AggregateError ? error.errors : []].flat().filter((cause) => cause !== undefined).slice(0, MAX_CAUSES);
  const caused = depth < MAX_CAUSES ? causes.map((cause) => `caused by: ${cause instanceof Error ? described(cause, depth + 1) : shown(cause)}`) : [];
  return words([first, ...lines.map(authored), ...caused].join("\n"));
};
// A line of a stack, in the author's own lines where the module was TypeScript.
const authored = (line) => line.replace(/([^\s()]+):(\d+):\d+/, (place, name, number) => {
  const own = host.lines[name]?.[number - 1];
  return own ? `${name}:${own}` : place;
});
runtime.described = (error) => described(error);
