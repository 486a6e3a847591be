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

// A stack can be set to any value, as where it is a property of the error: packages set `undefined`.
const { get: stackOf } = Object.getOwnPropertyDescriptor(Error.prototype, "stack");
Object.defineProperty(Error.prototype, "stack", {
  get: stackOf,
  set(value) { Object.defineProperty(this, "stack", { value, configurable: true, writable: true }); },
  configurable: true,
});

// An array hands its arguments on.
for (const type of [Array, Object.getPrototypeOf(Uint8Array)]) {
  method(type, "toLocaleString", function toLocaleString(locales, options) {
    return Array.prototype.map.call(this, (item) => (item === undefined || item === null ? "" : item.toLocaleString(locales, options))).join(",");
  });
}
