// Integers of JSON that a number cannot hold: no digit of them is lost.
const INTEGER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const RANGES = { int64: [-(2n ** 63n), 2n ** 63n - 1n], uint64: [0n, 2n ** 64n - 1n] };
let drawn;
/** What is before an integer that is written as a text for a while: no text of others has it. */
const markOf = () => (drawn ??= `integer ${Array.from(host.random(16)).join(".")} `);
let hasMarked = false;
/** A BigInt that is written as JSON. */
const marked = (value) => {
  hasMarked = true;
  return `${markOf()}${value}`;
};
const unmarked = (text) => {
  if (!hasMarked) return text;
  hasMarked = false;
  return text?.replace(new RegExp(`"${markOf()}(-?\\d+)"`, "g"), "$1");
};

/** JSON in which each integer that a number cannot hold is a text behind `mark`. */
const withMarks = (text, mark) => {
  let [out, at] = ["", 0];
  const between = (piece) => piece.replace(INTEGER, (number) => (/^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number)) ? `"${mark}${number}"` : number));
  while (at < text.length) {
    const quote = text.indexOf('"', at), from = quote < 0 ? text.length : quote;
    out += between(text.slice(at, from));
    let to = from + 1;
    while (to < text.length && text[to] !== '"') to += text[to] === "\\" ? 2 : 1;
    out += text.slice(from, to + 1);
    at = to + 1;
  }
  return out;
};
/** The part of the schema that has this anchor. */
const anchored = (from, name) => {
  if (typeof from !== "object" || from === null) return undefined;
  if (from.$anchor === name) return from;
  return Object.values(from).map((inner) => anchored(inner, name)).find((found) => found !== undefined);
};
/** The part of the schema that a reference names, by pointer or by anchor. */
const referred = (root, name) => (name !== "" && name[0] !== "/" ? anchored(root, name)
  : name.split("/").slice(1).reduce((inner, step) => inner?.[step.replace(/~1/g, "/").replace(/~0/g, "~")], root));
/** The schemas of the patterns that a name matches. An invalid regular expression matches no name. */
const matching = (patterns, name) => Object.entries(patterns ?? {}).filter(([pattern]) => {
  try { return new RegExp(pattern, "u").test(name); } catch { return false; }
}).map(([, schema]) => schema);
/** What the schema says of a member, through references within it and choices. */
const partOfSchema = (root, schema, step) => {
  const all = [schema], parts = [];
  for (let at = 0; at < all.length && at < 64; at += 1) {
    const one = all[at];
    if (typeof one !== "object" || one === null) continue;
    if (typeof one.$ref === "string" && one.$ref.startsWith("#")) all.push(referred(root, decodeURIComponent(one.$ref.slice(1))));
    for (const choices of [one.anyOf, one.oneOf, one.allOf, [one.then, one.else].filter(Boolean)]) if (Array.isArray(choices)) all.push(...choices);
    parts.push(one);
  }
  if (step === undefined) return parts;
  const inner = typeof step === "number" ? (one) => [one.prefixItems?.[step] ?? (Array.isArray(one.items) ? one.items[step] ?? one.additionalItems : one.items)]
    : (one) => [one.properties?.[step] ?? one.additionalProperties, ...matching(one.patternProperties, step)];
  return { anyOf: parts.flatMap(inner).filter((one) => typeof one === "object") };
};
/** The value with its integers. `refuse` is called for one that the schema does not say to have 64 bits. */
const restored = (value, mark, root, schema, path, refuse) => {
  if (typeof value === "string" && value.startsWith(mark)) {
    const digits = value.slice(mark.length);
    const integer = BigInt(digits), isExact = Number.isFinite(Number(digits)) && BigInt(Number(digits)) === integer;
    if (!refuse) return isExact ? Number(digits) : integer;
    const ranges = partOfSchema(root, schema).map(({ format }) => RANGES[format]).filter(Boolean);
    if (ranges.some(([least, most]) => integer >= least && integer <= most)) return integer;
    if (!isExact || ranges.length > 0) refuse(path, digits);
    return Number(digits);
  }
  if (typeof value !== "object" || value === null) return value;
  const isList = Array.isArray(value);
  for (const name of Object.keys(value)) {
    const step = isList ? Number(name) : name, place = isList ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    const inner = restored(value[name], mark, root, refuse && partOfSchema(root, schema, step), place, refuse);
    if (inner !== value[name]) Object.defineProperty(value, name, { value: inner, configurable: true, enumerable: true, writable: true });
  }
  return value;
};
/** The value of JSON. An integer whose digits a number would lose is a BigInt. */
const exactJson = (text, schema, refuse, isLong = runtime.hasLongNumber(text)) => {
  if (!isLong) return parse(text);
  const mark = markOf(), marks = withMarks(text, mark);
  return marks === text ? parse(text) : restored(parse(marks), mark, schema, schema, "", refuse);
};
/** Arguments: their value, or their text if it has 16 digits in a row. A tool that counts with numbers gets no BigInt that it does not expect. */
const argumentsOf = ({ parameters }, given, isText) => (isText ? exactArguments(parameters, given) : given);
const exactArguments = (parameters, text) => exactJson(text, parameters, (path, digits) => {
  throw new ToolFailure(`the argument \`${path}\` is ${digits}, which does not fit: a number of JavaScript would lose digits, and 64 bits are the most: the tool's author can declare it with \`format: "int64"\` to get a BigInt, or as a string`);
}, true);
