// Applies the operations of a JSON Patch.
import { same } from "./diff.js";
import { parsed } from "./pointer.js";

export class PatchError extends Error {
  constructor(operation, message) {
    super(message);
    this.operation = operation;
  }
}

/** The value after all operations. The given value is not changed. */
export const patched = (document, operations) => {
  // The document is a member of a list, so that it can be replaced as a whole like every other value.
  const root = [structured(document)];
  operations.forEach((operation, index) => {
    const fail = (problem) => {
      throw new PatchError(index, `operation ${index} (${operation.op} ${operation.path}): ${problem}`);
    };
    apply(root, operation, fail);
  });
  return root[0];
};

const structured = (value) => JSON.parse(JSON.stringify(value));

const apply = (root, { op, path, from, value }, fail) => {
  if (["add", "replace", "test"].includes(op) && value === undefined) fail("it has no `value`");
  if (["move", "copy"].includes(op) && from === undefined) fail("it has no `from`");
  if (op === "test") {
    if (!same(read(root, path, fail), value)) fail("the value is another one");
  } else if (op === "add") add(root, path, structured(value), fail);
  else if (op === "remove") remove(root, path, fail);
  else if (op === "copy") add(root, path, structured(read(root, from, fail)), fail);
  else if (op === "move") {
    if (path.startsWith(`${from}/`)) fail("a value cannot be moved into itself");
    const moved = read(root, from, fail);
    remove(root, from, fail);
    add(root, path, moved, fail);
  } else {
    read(root, path, fail);
    const [holder, name] = place(root, path, fail);
    holder[name] = structured(value);
  }
};

/** The object or list that holds what a pointer names, and the member's name. */
const place = (root, pointer, fail) => {
  const names = parsed(pointer) ?? fail(`\`${pointer}\` is not a JSON Pointer: it begins with a slash`);
  const [last, ...holders] = ["0", ...names].reverse();
  const holder = holders.reverse().reduce((value, name) => member(value, name, pointer, fail), root);
  return [holder, Array.isArray(holder) && last !== "-" ? index(last, holder.length, pointer, fail) : last];
};

const read = (root, pointer, fail) => {
  const [holder, name] = place(root, pointer, fail);
  return member(holder, String(name), pointer, fail);
};

const member = (holder, name, pointer, fail) => {
  if (holder === null || typeof holder !== "object") fail(`there is nothing at \`${pointer}\``);
  const key = Array.isArray(holder) ? index(name, holder.length, pointer, fail) : name;
  if (!Object.hasOwn(holder, key)) fail(`there is nothing at \`${pointer}\``);
  return holder[key];
};

const index = (name, length, pointer, fail) => {
  if (!/^(0|[1-9]\d*)$/.test(name) || Number(name) > length) fail(`a list of ${length} items has no place \`${name}\` (${pointer})`);
  return Number(name);
};

const add = (root, pointer, value, fail) => {
  const [holder, name] = place(root, pointer, fail);
  if (holder === root) root[0] = value;
  else if (Array.isArray(holder)) holder.splice(name === "-" ? holder.length : name, 0, value);
  else if (holder === null || typeof holder !== "object") fail(`there is nothing at \`${pointer}\``);
  else set(holder, name, value);
};

const remove = (root, pointer, fail) => {
  read(root, pointer, fail);
  const [holder, name] = place(root, pointer, fail);
  if (holder === root) fail("the whole document cannot be removed");
  if (Array.isArray(holder)) holder.splice(name, 1);
  else delete holder[name];
};

/** `__proto__` is a member like every other one. */
const set = (holder, name, value) =>
  Object.defineProperty(holder, name, { value, writable: true, enumerable: true, configurable: true });
