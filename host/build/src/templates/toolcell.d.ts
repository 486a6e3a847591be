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

  interface Definition<Arguments> {
    name: string;
    /** What the tool does and when to use it: a model reads it. */
    description: string;
    /** JSON Schema of the arguments. The host refuses what does not fit. */
    parameters?: Schema;
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
    validate?(args: Arguments): string[] | Promise<string[]>;
    /** Whether the tool is offered in this context. */
    visible?(context: Context): boolean | Promise<boolean>;
    handler(args: Arguments, context: Context): unknown;
  }

  export function tool<Arguments = any>(definition: Definition<Arguments>): Definition<Arguments>;

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

  /** The value of a promise. Throws a `ToolFailure` if no work is left that could settle it. */
  export function settled<Value>(promise: Promise<Value>): Promise<Value>;
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

/** Sends a request under the tool's grants. Redirects are not followed. */
declare function fetch(
  url: string,
  options?: {
    method?: string;
    headers?: { [name: string]: string } | [string, string][];
    body?: string | Uint8Array | ArrayBuffer;
    /** A handle of `secrets.get`: the host puts its value into the request. */
    secret?: { name: string };
    timeoutMs?: number;
  },
): Promise<{
  status: number;
  ok: boolean;
  url: string;
  headers: { get(name: string): string | null; has(name: string): boolean };
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
}>;
declare const console: { [level in "trace" | "debug" | "log" | "info" | "warn" | "error"]: (...values: unknown[]) => void };
