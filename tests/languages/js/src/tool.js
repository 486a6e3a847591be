import { abort, askUser, halt, invoke, InvokeError, kv, output, progress, secrets, settled, tool, ToolFailure, unhandledRejections } from "toolcell";
import { fail, failLater } from "./endings.js";

const parameters = { type: "object", properties: { how: { type: "string" } }, required: ["how"] };
const needs = [
  { kind: "http", pattern: "GET https://api.example.com/v1", reason: "to look something up" },
  { kind: "secret", pattern: "api_key", reason: "to authenticate there" },
  { kind: "reveal", pattern: "password", reason: "to measure it" },
  { kind: "kv", pattern: "write counters/*", reason: "to count" },
  { kind: "invoke", pattern: "find_place", reason: "to find places" },
  { kind: "invoke", pattern: "endings", reason: "to call itself" },
];
const read = async () => {
  const answer = await fetch("https://api.example.com/v1/city?q=Bern", { secret: secrets.get("api_key") });
  return { status: answer.status, ...(await answer.json()) };
};
const count = () => {
  const next = (kv.get("counters/calls") ?? 0) + 1;
  kv.set("counters/calls", next);
  return next;
};
const keys = () => {
  kv.setBytes("counters/a", "1\0" + "2", { ttlMs: 60000 });
  kv.set("counters/b", null);
  if (kv.getBytes("counters/a").join() !== "49,0,50") throw new ToolFailure("the bytes are others");
  return { existed: kv.delete("counters/b"), missing: kv.delete("counters/b"), names: kv.list("counters/") };
};
const waits = () => {
  console.warn("waiting");
  progress(1, 2, "half");
  while (!abort.requested) for (let turns = 0; turns < 100000; turns++);
  return "stopped";
};
const invokeCaught = async (tool) => {
  try {
    return await invoke(tool, { name: "Bern" });
  } catch (error) {
    if (error instanceof InvokeError) return [error.kind, error.data ?? null];
    throw error;
  }
};
const loop = { self: null };
loop.self = loop;
const caused = () => {
  try {
    fail();
  } catch (cause) {
    throw new Error("no cheese today", { cause });
  }
};
const nested = (depth) => (depth === 0 ? [] : [nested(depth - 1)]);
const recurse = (depth) => recurse(depth + 1) + 1;
const flood = () => Promise.resolve().then(flood);
const queue = () => queueMicrotask(queue);
class Counts extends Map {
  toJSON() { return Object.fromEntries(this); }
}
const lose = (promises) => {
  promises();
  return "done";
};
const endings = {
  value: () => ({ list: [1, 2.5, "three"], nothing: null, yes: true }),
  nothing: () => undefined,
  text: () => output("text", { message: "a message", parts: ["a part"] }),
  promise: async () => (await Promise.all([1, 2, 3].map(async (n) => n * n))).join(),
  failure: () => { throw new ToolFailure("no such city", { data: { city: "Atlantis" }, retryAfterMs: 1500 }); },
  ask: (context) => (context.answer === undefined ? askUser("Which one?", { options: ["a", "b"], state: 7 }) : [context.answer, context.state]),
  halt: () => halt("done", { total: 3 }),
  read,
  denied: () => fetch("https://elsewhere.example.com/"),
  count,
  keys,
  reveal: () => secrets.reveal("password").length,
  reveal_denied: () => secrets.reveal("elsewhere"),
  waits,
  invoke: () => invoke("find_place", { name: "Bern" }),
  invoke_caught: () => invokeCaught("find_place"),
  loop: () => invoke("endings", { how: "loop" }),
  invoke_denied: () => invokeCaught("delete_all"),
  progress: () => progress(1, 2, "half"),
  throws: fail,
  caused,
  throws_text: () => { throw "just a text"; },
  throws_map: () => { throw new Map([["ratio", NaN], ["why", new RangeError("no")]]); },
  pending: () => new Promise(() => {}),
  lost: () => lose(() => Promise.reject(new RangeError("out of cheese"))),
  lost_later: () => lose(failLater),
  lost_text: () => lose(() => Promise.reject("just a text")),
  lost_job: () => lose(() => queueMicrotask(fail)),
  lost_failure: () => lose(async () => { throw new ToolFailure("no such city"); }),
  lost_denied: () => lose(() => fetch("https://elsewhere.example.com/")),
  lost_wait: () => lose(() => settled(new Promise(() => {}))),
  lost_taken: async () => {
    failLater();
    return (await unhandledRejections()).map((error) => error.message);
  },
  handled_later: async () => {
    const promises = [failLater(), Promise.reject(new Error("no"))];
    await null;
    return (await Promise.allSettled(promises)).map(({ reason }) => reason.message);
  },
  circle: () => loop,
  bigint: () => [10, NaN],
  nan: () => ({ ratio: NaN }),
  infinite: () => [1e400],
  surrogate: () => ["\ud800"],
  deepest: () => [nested(125)],
  deep: () => [nested(126)],
  details: () => { throw new ToolFailure("no such city", { data: { city: new Set() } }); },
  bottomless: () => bottomless(),
  bottomless_details: () => { throw new ToolFailure("no such city", { data: bottomless() }); },
  used_up: () => { const rows = [1, 2].values(); return { get rows() { return [...rows]; }, next: null }; },
  remote: () => new Proxy({}, { get: (_, name) => (name === "then" ? (resolve) => resolve(42) : undefined) }),
  job_before_end: () => { const list = []; queueMicrotask(() => list.push(1)); return list; },
  retries: () => { throw new ToolFailure("too many requests", { retryable: 1, retryAfterMs: "1500" }); },
  base64: () => output("a picture", { parts: [{ type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }] }),
  misspelt: () => { try { output(1, { mesage: "one" }); } catch (error) { return error.message; } },
  stack: () => new RangeError("out of\ncheese").stack.split("\n").slice(0, 3),
  custom: () => { throw new Own("out of cheese"); },
  foreign: () => output("a resource", { parts: [{ type: "resource", uri: "a:b", text: "c" }] }),
  imported: async () => [await import("./words.json", { with: { type: "json" } }), await import("./words.json")].map((module) => module.default),
  untyped: () => output("a picture", { parts: [{ type: "image", data: new Uint8Array(1) }] }),
  half: () => { throw new ToolFailure("no such \ud800city"); },
  part: () => progress(0.25, 1),
  logs: () => {
    console.group("a");
    console.assert(false, "b");
    console.dir({ c: 1 });
    console.table([{ d: 1 }]);
    console.count();
    console.time();
    console.timeEnd();
    console.groupEnd();
    return "logged";
  },
  late: () => { kv.set("counters/late", 1, { ttlMs: -5 }); return kv.get("counters/late"); },
  timeless: () => { try { kv.set("counters/late", 1, { ttlMs: NaN }); } catch (error) { return error.message; } },
  function: () => () => 1,
  recursion: () => recurse(0),
  microtasks: flood,
  queued: queue,
  map: () => new Map([["a", 1]]),
  set: () => ({ names: [new Set(["a"])] }),
  iterator: () => new Map([["a", 1]]).keys(),
  response: () => new Response("a body"),
  raised: () => ({ city: null, error: new RangeError("out of cheese") }),
  coded: () => ({ error: Object.assign(new Error("out of cheese"), { code: 5 }), rest: {} }),
  promised: () => ({ value: Promise.resolve(1) }),
  written: () => ({ counts: new Counts([["a", 1]]) }),
  spin: () => { for (;;); },
  memory: () => { const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1)); },
  clock: () => new Date().toISOString(),
  random: () => Math.random(),
};

class Own extends Error {
  constructor(message) {
    super(message);
    Error.captureStackTrace(this, Own);
    this.name = "Own";
  }
}
const bottomless = () => {
  let list = [];
  for (let depth = 0; depth < 100000; depth += 1) list = [list];
  return list;
};

export default tool({
  name: "endings",
  description: "Ends a call in each of the ways in which a call can end.",
  parameters,
  needs,
  validate: ({ how }) => (how in endings ? [] : [`there is no ending ${how}`]),
  handler: ({ how }, context) => endings[how](context),
});
