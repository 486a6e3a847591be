// Locales: English of the United States and UTC, as Node has them without settings. What is not honoured is an error by its name:
// the engine would ignore it in silence.
const ENGLISH = ["en", "en-US"];
const refused = (what, name, value) => {
  throw new RangeError(`${what}: ${name} ${stringify(value)} is not here: only "en-US", UTC and the plain form are, and time zones and more options if a module names Intl`);
};
/** The options, if each of them is known, and has one of these values where a list is given. */
const optionsOf = (what, locales, options, known) => {
  for (const locale of [locales ?? []].flat()) if (!ENGLISH.includes(String(locale))) refused(what, "the locale", String(locale));
  if (options === null) throw new TypeError(`${what}: null is no object with options`);
  for (const name in options) {
    const value = options[name];
    if (value === undefined) continue;
    if (!(name in known) || (known[name] !== null && !known[name].includes(value))) refused(what, `the option ${name}`, value);
  }
  return options ?? {};
};
const method = (type, name, call) => Object.defineProperty(type.prototype, name, { value: call, configurable: true, writable: true });

const DIGITS = { minimumFractionDigits: null, maximumFractionDigits: null, useGrouping: [true, false], style: ["decimal"] };
const grouped = (digits) => {
  const head = digits.length % 3, groups = head > 0 ? [digits.slice(0, head)] : [];
  for (let at = head; at < digits.length; at += 3) groups.push(digits.slice(at, at + 3));
  return groups.join(",");
};
/** The digits of a number that is not negative, before and behind its point: of its shortest text, rounded half up. */
const rounded = (number, most) => {
  const [mantissa, power = "0"] = String(number).split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  let [digits, point] = [whole + fraction, whole.length + Number(power)];
  if (point < 0) [digits, point] = ["0".repeat(-point) + digits, 0];
  digits = digits.padEnd(point, "0");
  const kept = point + most;
  if (digits.length > kept) {
    const isUp = digits[kept] >= "5";
    digits = digits.slice(0, kept);
    if (isUp) {
      const raised = (BigInt(digits || "0") + 1n).toString().padStart(kept, "0");
      [digits, point] = [raised, point + raised.length - kept];
    }
  }
  return [digits.slice(0, point).replace(/^0+(?=.)/, "") || "0", digits.slice(point)];
};
method(Number, "toLocaleString", function toLocaleString(locales, options) {
  if (typeof this !== "number" && !(this instanceof Number)) throw new TypeError("toLocaleString: this is no number");
  const known = optionsOf("toLocaleString", locales, options, DIGITS);
  const number = Number(this), { minimumFractionDigits = 0, maximumFractionDigits } = known;
  const least = Number(minimumFractionDigits), most = maximumFractionDigits === undefined ? Math.max(least, 3) : Number(maximumFractionDigits);
  if (!(least >= 0 && most >= least && most <= 100)) throw new RangeError("toLocaleString: the numbers of fraction digits do not fit");
  if (number !== number) return "NaN";
  if (number - number !== 0) return number < 0 ? "-∞" : "∞";
  let [whole, fraction] = rounded(Math.abs(number), most);
  fraction = fraction.padEnd(least, "0");
  while (fraction.length > least && fraction.endsWith("0")) fraction = fraction.slice(0, -1);
  const isNegative = number < 0 || Object.is(number, -0);
  return `${isNegative ? "-" : ""}${known.useGrouping === false ? whole : grouped(whole)}${fraction === "" ? "" : `.${fraction}`}`;
});
method(BigInt, "toLocaleString", function toLocaleString(locales, options) {
  optionsOf("toLocaleString", locales, options, {});
  const text = this.toString();
  return text.startsWith("-") ? `-${grouped(text.slice(1))}` : grouped(text);
});

const UTC = { timeZone: ["UTC", "Etc/UTC", "GMT"] };
const two = (number) => String(number).padStart(2, "0");
const dateText = (date) => {
  const year = date.getUTCFullYear();
  return `${date.getUTCMonth() + 1}/${date.getUTCDate()}/${year > 0 ? year : 1 - year}`;
};
const timeText = (date) => `${date.getUTCHours() % 12 || 12}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())} ${date.getUTCHours() < 12 ? "AM" : "PM"}`;
for (const [name, text] of [["toLocaleDateString", dateText], ["toLocaleTimeString", timeText], ["toLocaleString", (date) => `${dateText(date)}, ${timeText(date)}`]]) {
  method(Date, name, function (locales, options) {
    optionsOf(name, locales, options, UTC);
    return Number.isNaN(this.getTime()) ? "Invalid Date" : text(this);
  });
}

for (const name of ["toLocaleUpperCase", "toLocaleLowerCase"]) {
  const plain = String.prototype[name];
  method(String, name, function (locales) {
    // Only these have rules of their own.
    for (const locale of [locales ?? []].flat()) if (/^(tr|az|lt|el|hy)\b/i.test(String(locale))) refused(name, "the locale", String(locale));
    return plain.call(this);
  });
}

// The order of the Unicode collation for what is no letter.
const BEFORE = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789";
const MARKS = /\p{M}/u;
/** The letters of a text: each with the weight of its base, of its marks and of its case. */
const weights = (text) => {
  const all = [];
  for (const character of text.normalize("NFD")) {
    if (MARKS.test(character)) {
      if (all.length > 0) all[all.length - 1].marks += character;
      continue;
    }
    const at = BEFORE.indexOf(character), lower = character.toLowerCase();
    const base = at >= 0 ? at : /[a-z]/.test(lower) ? BEFORE.length + lower.codePointAt(0) : undefined;
    all.push({ base, character, marks: "", isUpper: lower !== character });
  }
  return all;
};
const COLLATION = { numeric: null, sensitivity: null, usage: ["sort", "search"], ignorePunctuation: [false], caseFirst: ["false"] };
/** How far two texts differ in their order: negative, 0 or positive. */
const collated = (one, other, { numeric = false, sensitivity = "variant" } = {}) => {
  if (!["base", "accent", "case", "variant"].includes(sensitivity)) refused("localeCompare", "the option sensitivity", sensitivity);
  if (one === other) return 0;
  const [a, b] = [weights(one), weights(other)];
  const isDigit = ({ base }) => base >= BEFORE.length - 10 && base < BEFORE.length;
  let [i, j, marks, cases, unknown] = [0, 0, 0, 0, undefined];
  while (i < a.length && j < b.length) {
    if (numeric && isDigit(a[i]) && isDigit(b[j])) {
      const ends = [[a, i], [b, j]].map(([all, from]) => { let to = from; while (to < all.length && isDigit(all[to])) to += 1; return to; });
      const [x, y] = [a.slice(i, ends[0]), b.slice(j, ends[1])].map((run) => run.map(({ base }) => base - BEFORE.length + 10).join("").replace(/^0+(?=.)/, ""));
      if (x.length !== y.length) return x.length - y.length;
      if (x !== y) return x < y ? -1 : 1;
      [i, j] = ends;
      continue;
    }
    if (a[i].base !== b[j].base || (a[i].base === undefined && a[i].character !== b[j].character)) {
      for (const { base, character } of [a[i], b[j]]) if (base === undefined) refused("localeCompare", "the order of", character);
      return a[i].base - b[j].base;
    }
    if (marks === 0 && a[i].marks !== b[j].marks) {
      marks = a[i].marks < b[j].marks ? -1 : 1;
      // Marks have an order of their own.
      if (a[i].marks !== "" && b[j].marks !== "") unknown = b[j].character + b[j].marks;
    }
    if (cases === 0 && a[i].isUpper !== b[j].isUpper) cases = a[i].isUpper ? 1 : -1;
    i += 1;
    j += 1;
  }
  if (i < a.length || j < b.length) return i < a.length ? 1 : -1;
  if (marks !== 0 && (sensitivity === "accent" || sensitivity === "variant")) {
    if (unknown !== undefined) refused("localeCompare", "the order of", unknown.normalize());
    return marks;
  }
  return sensitivity === "case" || sensitivity === "variant" ? cases : 0;
};
method(String, "localeCompare", function localeCompare(other, locales, options) {
  return Math.sign(collated(String(this), String(other), optionsOf("localeCompare", locales, options, COLLATION)));
});
