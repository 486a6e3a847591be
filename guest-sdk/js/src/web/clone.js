// structuredClone: the values that can be copied, with cycles, and an error for the others.
const uncloneable = (what) => { throw new DOMException(`${what} could not be cloned.`, "DataCloneError"); };
const ERROR_TYPES = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const copied = (value, known) => {
  if (typeof value === "symbol") uncloneable(String(value));
  if (typeof value === "function") uncloneable(String(value).slice(0, 60));
  if (typeof value !== "object" || value === null) return value;
  if (known.has(value)) return known.get(value);
  const keep = (copy) => { known.set(value, copy); return copy; };
  switch (tag.call(value)) {
    case "[object Boolean]": case "[object Number]": case "[object String]": case "[object BigInt]":
      return keep(Object(value.valueOf()));
    case "[object Date]": return keep(new Date(value.getTime()));
    case "[object RegExp]": return keep(new RegExp(value.source, value.flags));
    case "[object ArrayBuffer]": return keep(value.slice(0));
    case "[object Map]": {
      const copy = keep(new Map());
      for (const [key, item] of [...value]) copy.set(copied(key, known), copied(item, known));
      return copy;
    }
    case "[object Set]": {
      const copy = keep(new Set());
      for (const item of [...value]) copy.add(copied(item, known));
      return copy;
    }
  }
  if (ArrayBuffer.isView(value)) {
    const buffer = copied(value.buffer, known);
    const length = value instanceof DataView ? value.byteLength : value.length;
    return keep(new value.constructor(buffer, value.byteOffset, length));
  }
  if (value instanceof Error) {
    const copy = keep(Object.create((ERROR_TYPES[value.name] ?? Error).prototype));
    for (const name of ["stack", "message", "cause"]) {
      if (name === "stack" || Object.hasOwn(value, name)) Object.defineProperty(copy, name, { configurable: true, writable: true, value: copied(value[name], known) });
    }
    return copy;
  }
  const type = tag.call(value);
  if (type !== "[object Object]" && type !== "[object Array]" && type !== "[object Arguments]") uncloneable(`#<${type.slice(8, -1)}>`);
  const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
  for (const name of Object.keys(value)) {
    Object.defineProperty(copy, name, { configurable: true, enumerable: true, writable: true, value: copied(value[name], known) });
  }
  return copy;
};
globalThis.structuredClone = (value, { transfer = [] } = {}) => {
  if ([...transfer].some((item) => !(item instanceof ArrayBuffer))) uncloneable("a value that is no ArrayBuffer, in `transfer`,");
  const copy = copied(value, new Map());
  for (const buffer of transfer) buffer.transfer();
  return copy;
};
