// Methods of built-in objects in which the engine does not follow the standard.
// A part that is no number makes a date invalid.
for (const name of Object.getOwnPropertyNames(Date.prototype)) {
  if (!name.startsWith("set") || name === "setTime") continue;
  const plain = Date.prototype[name];
  Object.defineProperty(Date.prototype, name, {
    value: { [name](...parts) {
      const numbers = parts.slice(0, plain.length).map(Number);
      return numbers.length > 0 && numbers.every(Number.isFinite) ? plain.apply(this, numbers) : this.setTime(NaN);
    } }[name],
    configurable: true, writable: true,
  });
}

// A stack begins with the error's name and message, as in Node, and can be set to any value: packages set `undefined`.
const { get: framesOf } = Object.getOwnPropertyDescriptor(Error.prototype, "stack");
const { captureStackTrace: capture } = Error;
// What `Error.prepareStackTrace` returned is a whole stack.
const withFirstLine = (error, frames) => (frames === "" || frames?.startsWith?.("    at ") ? `${errorText.call(error)}\n${frames}`.trimEnd() : frames);
const setStack = function (value) { Object.defineProperty(this, "stack", { value, configurable: true, writable: true }); };
Object.defineProperty(Error.prototype, "stack", {
  get() { return withFirstLine(this, framesOf.call(this)); },
  set: setStack, configurable: true,
});
Object.defineProperty(Error, "captureStackTrace", {
  value: function captureStackTrace(target, above = Error.captureStackTrace) {
    capture(target, above);
    const frames = Object.getOwnPropertyDescriptor(target, "stack")?.value;
    // Written when it is read, as in Node: a class sets its name after this.
    Object.defineProperty(target, "stack", { get: () => withFirstLine(target, frames), set: setStack, configurable: true });
  },
  configurable: true, writable: true,
});

// An array hands its arguments on.
for (const type of [Array, Object.getPrototypeOf(Uint8Array)]) {
  method(type, "toLocaleString", function toLocaleString(locales, options) {
    return Array.prototype.map.call(this, (item) => (item === undefined || item === null ? "" : item.toLocaleString(locales, options))).join(",");
  });
}
