// Small schemas: each reads a text into a value of its type, or says what is wrong with it.

export type Read<Value> = { ok: true; value: Value } | { ok: false; problem: string };

/** Reads a text. Schemas are made of smaller ones, and TypeScript knows the type of what each reads. */
export interface Schema<Value> {
  read(text: string): Read<Value>;
}

export type TypeOf<S> = S extends Schema<infer Value> ? Value : never;

const good = <Value>(value: Value): Read<Value> => ({ ok: true, value });
const bad = (problem: string): Read<never> => ({ ok: false, problem });

export const text: Schema<string> = { read: good };

/** A number as people write it: `1,234.50`, `1'234.50`, `-3`, `12 %` without the sign. */
export const number: Schema<number> = {
  read(text) {
    const plain = text.replace(/(?<=\d)[,' ](?=\d{3}(\D|$))/g, "");
    return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? good(Number(plain)) : bad("it is not a number");
  },
};

export const integer: Schema<number> = where(number, Number.isSafeInteger, "it is not a whole number");

export const boolean: Schema<boolean> = {
  read(text) {
    const word = text.toLowerCase();
    if (["true", "yes", "y", "1"].includes(word)) return good(true);
    return ["false", "no", "n", "0"].includes(word) ? good(false) : bad("it is not yes or no");
  },
};

/** A day, as `2026-01-31` whether it was written so or as `31.01.2026`. */
export const date: Schema<string> = {
  read(text) {
    const found = /^(\d{4})-(\d\d?)-(\d\d?)$/.exec(text)?.slice(1) ?? /^(\d\d?)\.(\d\d?)\.(\d{4})$/.exec(text)?.slice(1).reverse();
    if (found === undefined) return bad("it is not a date such as 2026-01-31 or 31.01.2026");
    const [year, month, day] = found.map(Number);
    const at = new Date(Date.UTC(year, month - 1, day));
    const isReal = at.getUTCMonth() === month - 1 && at.getUTCDate() === day;
    return isReal ? good(at.toISOString().slice(0, 10)) : bad("there is no such day");
  },
};

export const email: Schema<string> = where(text, (value) => /^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(value), "it is not an email address");

/** The schema, for values of which this is true. */
export function where<Value>(schema: Schema<Value>, holds: (value: Value) => boolean, problem: string): Schema<Value> {
  return {
    read(text) {
      const read = schema.read(text);
      return read.ok && !holds(read.value) ? bad(problem) : read;
    },
  };
}

/** The schema, where a text that is empty is this value. */
export function or<Value, Empty>(schema: Schema<Value>, empty: Empty): Schema<Value | Empty> {
  return { read: (text) => (text.trim() === "" ? good(empty) : schema.read(text)) };
}
