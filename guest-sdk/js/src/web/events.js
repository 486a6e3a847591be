// Events and signals, as the DOM standard has them, for code without a document.
const ERRORS = {
  IndexSizeError: 1, InvalidCharacterError: 5, NotFoundError: 8, NotSupportedError: 9, InvalidStateError: 11, SyntaxError: 12, InvalidAccessError: 15,
  NetworkError: 19, AbortError: 20, QuotaExceededError: 22, TimeoutError: 23, DataCloneError: 25,
};
globalThis.DOMException = class DOMException extends Error {
  #name;
  constructor(message = "", name = "Error") {
    super(String(message));
    const { name: given, ...options } = typeof name === "object" && name !== null ? name : { name };
    this.#name = String(given ?? "Error");
    if ("cause" in options) this.cause = options.cause;
  }
  get name() { return this.#name; }
  get code() { return ERRORS[this.#name] ?? 0; }
  get [Symbol.toStringTag]() { return "DOMException"; }
};

globalThis.Event = class Event {
  static NONE = 0; static CAPTURING_PHASE = 1; static AT_TARGET = 2; static BUBBLING_PHASE = 3;
  #type; #options; #isDefaultPrevented = false; isStopped = false;
  target = null; currentTarget = null; eventPhase = 0; timeStamp = 0; isTrusted = false;
  constructor(type, options = {}) {
    if (arguments.length === 0) wrong("Event: pass its type");
    this.#type = String(type);
    this.#options = options ?? {};
    Object.defineProperty(this, "isStopped", { enumerable: false, writable: true, value: false });
    this.timeStamp = host.isInCell() ? performance.now() : 0;
  }
  get type() { return this.#type; }
  get bubbles() { return Boolean(this.#options.bubbles); }
  get cancelable() { return Boolean(this.#options.cancelable); }
  get composed() { return Boolean(this.#options.composed); }
  get defaultPrevented() { return this.#isDefaultPrevented; }
  get returnValue() { return !this.#isDefaultPrevented; }
  get srcElement() { return this.target; }
  composedPath() { return this.currentTarget === null ? [] : [this.currentTarget]; }
  preventDefault() { if (this.cancelable) this.#isDefaultPrevented = true; }
  stopPropagation() {}
  stopImmediatePropagation() { this.isStopped = true; }
  get [Symbol.toStringTag]() { return "Event"; }
};
globalThis.CustomEvent = class CustomEvent extends Event {
  #detail;
  constructor(type, options = {}) {
    super(type, options);
    this.#detail = options?.detail ?? null;
  }
  get detail() { return this.#detail; }
};

globalThis.EventTarget = class EventTarget {
  #listeners = [];
  addEventListener(type, listener, options = {}) {
    if (listener === null || listener === undefined) return;
    if (typeof listener !== "function" && typeof listener !== "object") wrong("addEventListener: the listener is a function or has `handleEvent`");
    const { once = false, capture = false, signal } = typeof options === "boolean" ? { capture: options } : options ?? {};
    const isSame = (known) => known.type === String(type) && known.listener === listener && known.capture === Boolean(capture);
    if (signal?.aborted || this.#listeners.some(isSame)) return;
    this.#listeners.push({ type: String(type), listener, once: Boolean(once), capture: Boolean(capture) });
    signal?.addEventListener("abort", () => this.removeEventListener(type, listener, { capture }));
  }
  removeEventListener(type, listener, options = {}) {
    const capture = Boolean(typeof options === "boolean" ? options : options?.capture);
    this.#listeners = this.#listeners.filter((known) => known.type !== String(type) || known.listener !== listener || known.capture !== capture);
  }
  dispatchEvent(event) {
    if (!(event instanceof Event)) wrong("dispatchEvent: pass an Event");
    if (event.eventPhase !== 0) throw new DOMException("the event is being dispatched", "InvalidStateError");
    [event.target, event.currentTarget, event.eventPhase] = [this, this, 2];
    for (const known of this.#listeners.filter(({ type }) => type === event.type)) {
      if (event.isStopped) break;
      if (!this.#listeners.includes(known)) continue;
      if (known.once) this.#listeners = this.#listeners.filter((other) => other !== known);
      try {
        if (typeof known.listener === "function") known.listener.call(this, event);
        else known.listener.handleEvent(event);
      } catch (error) {
        // As an error that no handler takes: it ends the call, and the other listeners run.
        Promise.reject(error);
      }
    }
    [event.currentTarget, event.eventPhase, event.isStopped] = [null, 0, false];
    return !event.defaultPrevented;
  }
};
/** An attribute such as `onabort`. */
const attribute = (type, name) => {
  const kept = new WeakMap();
  Object.defineProperty(type.prototype, `on${name}`, {
    configurable: true, enumerable: true,
    get() { return kept.get(this)?.listener ?? null; },
    set(listener) {
      const before = kept.get(this);
      if (before) this.removeEventListener(name, before.call);
      if (typeof listener !== "function") { kept.delete(this); return; }
      const call = (event) => listener.call(this, event);
      kept.set(this, { listener, call });
      this.addEventListener(name, call);
    },
  });
};

const abortError = () => new DOMException("This operation was aborted", "AbortError");
let mayMake = false;
globalThis.AbortSignal = class AbortSignal extends EventTarget {
  #reason = undefined; #isAborted = false;
  constructor() {
    super();
    if (!mayMake) wrong("AbortSignal: use `new AbortController().signal`, `AbortSignal.timeout` or `AbortSignal.any`");
  }
  get aborted() { return this.#isAborted; }
  get reason() { return this.#reason; }
  throwIfAborted() { if (this.#isAborted) throw this.#reason; }
  static abort(reason = abortError()) {
    const signal = made();
    signal.#abort(reason);
    return signal;
  }
  static timeout(milliseconds) {
    const signal = made();
    setTimeout(() => signal.#abort(new DOMException("The operation was aborted due to timeout", "TimeoutError")), milliseconds);
    return signal;
  }
  static any(signals) {
    const all = [...signals], signal = made();
    const first = all.find(({ aborted }) => aborted);
    if (first) signal.#abort(first.reason);
    else for (const other of all) other.addEventListener("abort", () => signal.#abort(other.reason), { once: true });
    return signal;
  }
  static abortOf(signal, reason) { signal.#abort(reason); }
  #abort(reason) {
    if (this.#isAborted) return;
    [this.#isAborted, this.#reason] = [true, reason];
    this.dispatchEvent(new Event("abort"));
  }
  get [Symbol.toStringTag]() { return "AbortSignal"; }
};
attribute(AbortSignal, "abort");
const made = () => {
  mayMake = true;
  try { return new AbortSignal(); } finally { mayMake = false; }
};
const { abortOf } = AbortSignal;
delete AbortSignal.abortOf;
globalThis.AbortController = class AbortController {
  #signal = made();
  get signal() { return this.#signal; }
  abort(reason = abortError()) { abortOf(this.#signal, reason); }
  get [Symbol.toStringTag]() { return "AbortController"; }
};
