// Types of the module `toolcell`, for editors. `toolcell build` strips types and does not check them.
declare module "toolcell" {
  type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
  type Schema = { [name: string]: unknown };

  /** One thing the tool needs, for an operator to grant or refuse. */
  interface Need {
    kind: "http" | "secret" | "reveal" | "kv" | "invoke";
    /** For example `GET https://api.example.com/v1`, a secret's name, `write notes/*`, or another tool's name. */
    pattern: string;
    /** Why, in one sentence. */
    reason: string;
  }

  /** Where a call comes from. What the caller did not give is absent. */
  interface Context {
    callId: string;
    sessionId?: string;
    requestId?: string;
    threadId?: string;
    runId?: string;
    tenant?: string;
    metadata?: Json;
    remainingMs: number;
    attempt: number;
    /** What a person answered to the question of an earlier call. */
    answer?: any;
    /** The state that the asking call left. */
    state?: any;
    extensions?: { [name: string]: Json };
  }

  /** The type of the values that a JSON Schema describes. A keyword that has no type here narrows nothing. */
  export type FromSchema<S> = string extends keyof S ? any : OfTypes<S> & OfValues<S> & OfChoices<S>;
  type OfTypes<S> = S extends { type: infer T } ? OfNames<S, T extends readonly (infer Each)[] ? Each : T> : unknown;
  type OfNames<S, T> = string extends T ? any : OfType<S, T>;
  type OfType<S, T> = T extends "string" ? string
    : T extends "number" | "integer" ? number
    : T extends "boolean" ? boolean
    : T extends "null" ? null
    : T extends "array" ? (S extends { items: infer Items } ? FromSchema<Items>[] : unknown[])
    : T extends "object" ? OfObject<S>
    : unknown;
  type OfObject<S> = S extends { properties: infer P } ? OfMembers<P, S extends { required: readonly (infer R)[] } ? R : never> & OfOthers<S>
    : S extends { additionalProperties: object | true } ? OfOthers<S>
    : { [name: string]: unknown };
  type OfMembers<P, R> = Flat<{ -readonly [K in keyof P as K extends R ? K : never]: FromSchema<P[K]> } & { -readonly [K in keyof P as K extends R ? never : K]?: FromSchema<P[K]> }>;
  type OfOthers<S> = S extends { additionalProperties: infer A } ? (A extends true ? { [name: string]: unknown } : A extends object ? { [name: string]: FromSchema<A> } : unknown) : unknown;
  type OfValues<S> = S extends { const: infer V } ? Mutable<V> : S extends { enum: readonly (infer V)[] } ? Mutable<V> : unknown;
  type OfChoices<S> = (S extends { anyOf: readonly (infer C)[] } ? OfEach<C> : unknown) & (S extends { oneOf: readonly (infer C)[] } ? OfEach<C> : unknown);
  type OfEach<C> = C extends unknown ? FromSchema<C> : never;
  type Mutable<V> = V extends object ? { -readonly [K in keyof V]: Mutable<V[K]> } : V;
  type Flat<T> = { [K in keyof T]: T[K] };

  interface Definition<Arguments, Parameters extends Schema = Schema> {
    name: string;
    /** What the tool does and when to use it: a model reads it. */
    description: string;
    /** JSON Schema of the arguments. The host refuses what does not fit. */
    parameters?: Parameters;
    /** JSON Schema of the result. */
    output?: Schema;
    attributes?: { [name: string]: Json };
    needs?: Need[];
    readOnly?: boolean;
    idempotent?: boolean;
    destructive?: boolean;
    openWorld?: boolean;
    maxExecutionMs?: number;
    /** What is wrong with the arguments beyond their schema. */
    validate?: (args: Arguments) => string[] | Promise<string[]>;
    /** Whether the tool is offered in this context. */
    visible?: (context: Context) => boolean | Promise<boolean>;
    handler: (args: Arguments, context: Context) => unknown;
  }

  interface BySchema {
    readonly bySchema: unique symbol;
  }
  /** A tool. The type of its arguments is that of `parameters`, or the one that is given: `tool<MyArguments>({ … })`. */
  export function tool<Arguments = BySchema, const Parameters extends Schema = Schema>(
    definition: Definition<NoInfer<[Arguments] extends [BySchema] ? FromSchema<Parameters> : Arguments>, Parameters>,
  ): object;

  /** A failure that the model reads. */
  export class ToolFailure extends Error {
    constructor(message: string, options?: { data?: Json; retryable?: boolean; retryAfterMs?: number });
  }
  /** Why the host did not do what was asked. */
  export class HostError extends ToolFailure {
    kind: string;
  }
  /** Asks a person; the tool is called again with the answer in its context. Return it. */
  export function askUser(question: string, options?: { options?: Json; answerSchema?: Schema; state?: Json }): object;
  /** Ends the agent's loop. Return it. */
  export function halt(reason: string, result?: unknown): object;

  type Part =
    | string
    | { type: "text"; text: string }
    | { type: "image" | "audio"; mimeType: string; data: Uint8Array }
    | { type: "resource_link"; uri: string; name?: string; description?: string; mimeType?: string };
  /** A result with more than a value. Return it. */
  export function output(value: unknown, more?: { message?: string; parts?: Part[]; endTurn?: boolean }): object;

  /** Why another tool gave no value. */
  export class InvokeError extends HostError {
    kind: "denied" | "limit" | "unavailable" | "failed" | "ask_user" | "halt" | "tool_error" | "refused";
    /** What a tool that `failed` gave as data, and else how the other tool ended. */
    data?: any;
  }
  /** Calls another tool of the host and returns its value. Throws `InvokeError` if there is none. */
  export function invoke<Value = any>(name: string, args?: object): Promise<Value>;

  export const fetch: typeof globalThis.fetch;

  /** The value of a promise. Throws a `ToolFailure` if no work is left that could settle it. */
  export function settled<Value>(promise: Promise<Value>): Promise<Value>;
  /** Waits until no other work is left, and gives the errors of promises that nothing handles. They do not end the call then. */
  export function unhandledRejections(): Promise<unknown[]>;
  export function progress(done: number, total?: number, message?: string): void;
  export const abort: { readonly requested: boolean };
  export function budget(): { fuel: number | null; milliseconds: number; memory: number };
  export const secrets: { get(name: string): Secret; reveal(name: string): string };
  interface Secret {
    name: string;
  }
  export const kv: {
    get(key: string): any;
    set(key: string, value: unknown, options?: { ttlMs?: number }): number;
    getBytes(key: string): Uint8Array | undefined;
    setBytes(key: string, value: Uint8Array | string, options?: { ttlMs?: number }): number;
    delete(key: string): boolean;
    list(prefix?: string): string[];
  };
}

/** More of `fetch`, which sends a request under the tool's grants. Redirects are not followed. */
interface RequestInit {
  /** A handle of `secrets.get`: the host puts its value into the request. */
  secret?: { name: string };
  timeoutMs?: number;
}
