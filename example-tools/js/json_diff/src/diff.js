// The operations that make one JSON value of another.
import { written } from "./pointer.js";

/** Cells of the table that compares two lists. Longer lists are compared place by place. */
const MOST_CELLS = 4_000_000;

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** A text that is the same for equal values: the order of an object's members does not count. */
const text = (value) => {
  if (Array.isArray(value)) return `[${value.map(text).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${text(value[name])}`).join()}}`;
};

export const same = (one, other) => text(one) === text(other);

/** The JSON Patch from `before` to `after`. */
export const diff = (before, after, path = "", operations = []) => {
  if (isObject(before) && isObject(after)) diffObjects(before, after, path, operations);
  else if (Array.isArray(before) && Array.isArray(after)) diffLists(before, after, path, operations);
  else if (!same(before, after)) operations.push({ op: "replace", path, value: after });
  return operations;
};

/** In the order of the names, so that equal values have equal differences. */
const diffObjects = (before, after, path, operations) => {
  for (const name of Object.keys(before).sort()) {
    if (!Object.hasOwn(after, name)) operations.push({ op: "remove", path: `${path}/${written(name)}` });
  }
  for (const name of Object.keys(after).sort()) {
    const place = `${path}/${written(name)}`;
    if (Object.hasOwn(before, name)) diff(before[name], after[name], place, operations);
    else operations.push({ op: "add", path: place, value: after[name] });
  }
};

/** Items that stay are found first; what lies between them is changed, then removed or added. */
const diffLists = (before, after, path, operations) => {
  let [from, to, place] = [0, 0, 0];
  for (const [keptFrom, keptTo] of [...kept(before, after), [before.length, after.length]]) {
    for (; from < keptFrom && to < keptTo; from++, to++, place++) {
      diff(before[from], after[to], `${path}/${place}`, operations);
    }
    for (; from < keptFrom; from++) operations.push({ op: "remove", path: `${path}/${place}` });
    for (; to < keptTo; to++, place++) operations.push({ op: "add", path: `${path}/${place}`, value: after[to] });
    [from, to, place] = [keptFrom + 1, keptTo + 1, place + 1];
  }
};

/** A longest common subsequence of two lists, as pairs of places. */
const kept = (before, after) => {
  const [one, other] = [before.map(text), after.map(text)];
  const width = other.length + 1;
  if ((one.length + 1) * width > MOST_CELLS) return [];
  const longest = new Uint32Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      const [right, below] = [longest[i * width + j + 1], longest[(i + 1) * width + j]];
      longest[i * width + j] = one[i] === other[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(right, below);
    }
  }
  const pairs = [];
  for (let [i, j] = [0, 0]; i < one.length && j < other.length; ) {
    if (one[i] === other[j]) pairs.push([i++, j++]);
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return pairs;
};
