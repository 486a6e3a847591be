// The module `toolcell`: what an author imports. `host` are the native functions. `answers.js` is the rest of the module.
const runtime = globalThis.__toolcell;
// Code of a handler may replace the globals. What ends a call does not depend on them.
const { Error, Promise, String, TypeError, JSON: { parse, stringify } } = globalThis;
const { toString: errorText } = Error.prototype, { keys: namesOf } = Object, { isArray } = Array;
// A text may contain half of a surrogate pair, which UTF-8 has no form for: the host gets its escape, `\ud83d` for example.
const escaped = (half) => `\\u${half.charCodeAt(0).toString(16)}`;
const words = (value) => {
  const text = String(value);
  return text.isWellFormed() ? text : text.replace(/[\ud800-\udfff]/gu, escaped);
};
const wellFormed = (value) => (typeof value === "string" ? words(value) : value);
const native = (call) => (typeof call === "function" ? (...given) => call(...given.map(wellFormed)) : call);
const host = Object.fromEntries(Object.entries(runtime).map(([name, call]) => [name, native(call)]));
// Bytes of a text are as the standard has them: U+FFFD is in place of a half.
host.encode = (text) => runtime.encode(text.toWellFormed());
const tools = new Map();
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const OPTIONS = ["name", "description", "parameters", "output", "attributes", "needs", "readOnly", "idempotent",
  "destructive", "openWorld", "maxExecutionMs", "validate", "visible", "handler"];

/** A failure that the model reads. Throw it, or return it. */
export class ToolFailure extends Error {
  constructor(message, { data, retryable, retryAfterMs } = {}) {
    super(String(message));
    this.name = "ToolFailure";
    this.data = data;
    this.retryable = retryable ?? (retryAfterMs === undefined ? undefined : true);
    this.retryAfterMs = retryAfterMs;
  }
}

/** Why the host did not do what was asked. `kind` is `denied`, `unavailable`, `timeout` and so on. */
export class HostError extends ToolFailure {
  constructor(kind, message, options) {
    super(message, options);
    this.name = "HostError";
    this.kind = kind;
  }
}

class Ending {
  constructor(kind, fields) {
    Object.assign(this, { kind }, fields);
  }
}
const options = (of, given, known) => {
  for (const option of namesOf(given ?? {})) {
    if (!known.includes(option)) wrong(`${of}: there is no option \`${option}\`; the options are ${known.join(", ")}`);
  }
  return given;
};

/** Suspends the agent's loop until a person answers. Return it. */
export const askUser = (question, given = {}) =>
  new Ending("ask_user", { question: String(question), ...options("askUser()", given, ["options", "answerSchema", "state"]) });

/** Ends the agent's loop with a result. Return it. */
export const halt = (reason, result) => new Ending("halt", { reason: String(reason), result });

/** A result with a message, with parts, or after which the model need not speak. Return it. */
export const output = (value, given = {}) => {
  const { message, parts, endTurn } = options("output()", given, ["message", "parts", "endTurn"]);
  if (parts !== undefined && parts !== null && !isArray(parts)) wrong("output(): `parts` is a list");
  return new Ending("ok", { value, message, parts, endTurn: Boolean(endTurn) });
};

const wrong = (what) => {
  throw new TypeError(what);
};

/** Makes a tool of a function. */
export function tool(definition) {
  if (host.isInCell()) wrong("tool(): call it at the top of a module, not in a handler");
  if (definition === null || typeof definition !== "object") wrong("tool(): pass an object: { name, description, handler }");
  const { name, description, handler } = definition;
  if (typeof name !== "string" || !NAME.test(name)) wrong("tool(): `name` has 1 to 64 of the characters A-Z, a-z, 0-9, _ and -");
  const about = `tool ${stringify(name)}`;
  options(about, definition, OPTIONS);
  if (tools.has(name)) wrong(`${about}: two tools have this name`);
  if (typeof description !== "string" || description.trim() === "") wrong(`${about}: \`description\` is missing: the model reads it to choose the tool`);
  if (typeof handler !== "function") wrong(`${about}: \`handler\` is not a function`);
  for (const check of ["validate", "visible"]) {
    if (definition[check] !== undefined && typeof definition[check] !== "function") wrong(`${about}: \`${check}\` is not a function`);
  }
  for (const need of definition.needs ?? []) {
    for (const field of ["kind", "pattern", "reason"]) {
      if (typeof need?.[field] !== "string") wrong(`${about}: each of \`needs\` is { kind, pattern, reason }, and all three are texts`);
    }
  }
  tools.set(name, definition);
  return definition;
}

// What a host function answers is JSON: `{"ok"}`, or `{"kind", "message"}` of what went wrong.
const of = (answer) => {
  const { ok, kind, message } = parse(answer);
  if (kind !== undefined) throw new HostError(kind, message);
  return ok;
};
const inCell = (what) => {
  if (!host.isInCell()) throw new TypeError(`${what} works in a handler only, not while the module is loaded`);
};
const granted = (kind, what, Denied = HostError) => {
  inCell(what);
  for (const { needs } of tools.values()) {
    if ((needs ?? []).some((need) => need.kind === kind)) return;
  }
  throw new Denied("denied", `${what} is not among what the tool needs: add { kind: "${kind}", pattern, reason } to its \`needs\``);
};

/** What JSON has no form for, as a person reads it. */
const legible = (_, inner) => {
  if (typeof inner === "bigint" || (typeof inner === "number" && inner - inner !== 0) || inner instanceof Error) return String(inner);
  return inner instanceof Map || inner instanceof Set ? [...inner] : inner;
};
/** Log lines by level; `console` uses it. */
const shown = (value) => {
  if (typeof value !== "object") return String(value);
  if (value instanceof Error) return described(value);
  try {
    return stringify(value, legible) ?? String(value);
  } catch {
    return String(value);
  }
};
const line = (level) => (...values) => {
  if (host.isInCell()) host.log(level, values.map(shown).join(" "));
};
const write = line(2), [counts, times] = [new Map(), new Map()];
const sinceTime = (label, values) => {
  if (times.has(label)) write(`${label}: ${host.now() - times.get(label)}ms`, ...values);
};
globalThis.console = {
  trace: line(0), debug: line(1), log: write, info: write, warn: line(3), error: line(4),
  dir: (value) => write(value), dirxml: write, table: (value) => write(value), group: write, groupCollapsed: write, groupEnd() {}, clear() {},
  assert: (isTrue, ...values) => { if (!isTrue) line(4)(values.length > 0 ? "Assertion failed:" : "Assertion failed", ...values); },
  count(label = "default") {
    counts.set(String(label), (counts.get(String(label)) ?? 0) + 1);
    write(`${label}: ${counts.get(String(label))}`);
  },
  countReset(label = "default") { counts.delete(String(label)); },
  time(label = "default") { if (host.isInCell()) times.set(String(label), host.now()); },
  timeLog: (label = "default", ...values) => sinceTime(String(label), values),
  timeEnd(label = "default") {
    sinceTime(String(label), []);
    times.delete(String(label));
  },
};

/** Reports how far the call has come. */
export const progress = (done, total, message) => {
  inCell("progress()");
  let [reached, all] = [Number(done), total === undefined ? -1 : Number(total)];
  // The host counts in whole numbers: parts of one are told in percent.
  if (all > 0 && !(Number.isInteger(reached) && Number.isInteger(all))) [reached, all] = [Math.round((reached / all) * 100), 100];
  host.progress(reached, all, message === undefined ? "" : String(message));
};

/** Whether the caller wants the call to end. */
export const abort = { get requested() { return host.isInCell() && host.abortRequested(); } };

/** What is left of the call's budget: { fuel, milliseconds, memory }. */
export const budget = () => {
  inCell("budget()");
  return parse(host.remaining());
};

const asBytes = (data) => {
  if (data instanceof Uint8Array) return data;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return host.encode(String(data));
};

// -- secrets and keys
/** Secrets by name. A handle goes into `fetch` as `secret`; `reveal` gives the value and is granted rarely. */
export const secrets = {
  get(name) {
    granted("secret", "secrets.get()");
    of(host.secret(String(name)));
    return { name: String(name) };
  },
  reveal(name) {
    granted("reveal", "secrets.reveal()");
    return of(host.reveal(String(name)));
  },
};

/** Keys and values that outlive the call. Values are JSON; `getBytes` and `setBytes` are for bytes. */
export const kv = {
  getBytes(key) {
    granted("kv", "kv");
    const bytes = host.kvGet(String(key));
    return typeof bytes === "string" ? of(bytes) ?? undefined : bytes;
  },
  get(key) {
    const bytes = this.getBytes(key);
    if (bytes === undefined) return undefined;
    try {
      return exactJson(host.decode(bytes));
    } catch (error) {
      throw new SyntaxError(`the value of the key ${key} is not JSON, read it with getBytes: ${error.message}`);
    }
  },
  setBytes(key, value, { ttlMs } = {}) {
    granted("kv", "kv");
    const time = ttlMs === undefined || ttlMs === null ? -1 : Math.max(0, Number(ttlMs));
    if (time !== time) wrong("kv: `ttlMs` is not a number");
    return of(host.kvSet(String(key), asBytes(value), time));
  },
  set(key, value, options) {
    return this.setBytes(key, written("value", value), options);
  },
  delete(key) {
    granted("kv", "kv");
    return of(host.kvDelete(String(key)));
  },
  list(prefix = "") {
    granted("kv", "kv");
    return of(host.kvList(String(prefix)));
  },
};

// -- other tools
/**
 * Why another tool gave no value. `kind` is `denied`, `limit` or `unavailable` if no call was made; `failed`, `ask_user`,
 * `halt`, `tool_error` or `refused` if it ended so. `data` is what a tool that `failed` gave as data, and else the ending.
 */
export class InvokeError extends HostError {
  constructor(kind, message, options) {
    super(kind, message, options);
    this.name = "InvokeError";
  }
}

const ended = (kind, ending) => {
  const { message, question, reason, data, retryable, retry_after_ms: retryAfterMs } = ending;
  const words = {
    failed: message,
    ask_user: `the other tool asks a person: ${question}`,
    halt: `the other tool stops the loop: ${reason}`,
    tool_error: `the other tool failed: ${message}`,
    refused: `the host refused the call: ${message}`,
  };
  const options = kind === "failed" ? { data, retryable, retryAfterMs } : { data: ending };
  return new InvokeError(kind, words[kind], options);
};

/** Calls another tool of the host and returns its value. Calls are made one after the other, in the order of the source. */
export const invoke = async (name, args = {}) => {
  granted("invoke", "invoke()", InvokeError);
  const { ok, kind, message, ending } = exactJson(host.invoke(String(name), written("arguments", args)));
  if (kind === undefined) return ok.value;
  throw ending === undefined ? new InvokeError(kind, message) : ended(kind, ending);
};

const awaited = [];
/** The value of a promise. Where no work is left that could settle it, this throws a `ToolFailure`. */
export const settled = (promise) => new Promise((resolve, reject) => {
  awaited.push(reject);
  promise.then(resolve, reject);
});

const waiting = [];
/**
 * Waits until no other work is left, and gives what promises were rejected with that nothing handles. These do not end the
 * call then.
 */
export const unhandledRejections = () => new Promise((resolve) => {
  waiting.push(resolve);
});

// What a job throws that no promise is made for would be lost.
globalThis.queueMicrotask = (job) => {
  if (typeof job !== "function") wrong("queueMicrotask(): pass a function");
  Promise.resolve().then(() => job());
};
