// Locales and options of `Intl`: English of the United States. A locale or an option that ECMA-402 has and that is not honoured
// here is an error that names it.
const refused = (what, name, value) => {
  throw new RangeError(`${what}: ${name} ${typeof value === "string" ? stringify(value) : String(value)} is not here: Intl has English of the United States`);
};
const method = (type, name, call) => Object.defineProperty(type.prototype, name, { value: call, configurable: true, writable: true });
const getter = (type, name, get) => Object.defineProperty(type.prototype, name, { get, configurable: true });

// Languages that have another tag.
const RENAMED = ["in", "iw", "ji", "jw", "mo", "no", "sh", "tl"];
const TAG = /^([a-z]{2,3}|[a-z]{5,8})(?:-([a-z]{4}))?(?:-([a-z]{2}|\d{3}))?((?:-(?:[a-z\d]{5,8}|\d[a-z\d]{3}))*)((?:-[a-wyz\d](?:-[a-z\d]{2,8})+)*)(-x(?:-[a-z\d]{1,8})+)?$/;
/** The parts of a language tag: base name, and the keys of its extension `u`. */
const tagOf = (tag) => {
  const match = TAG.exec(tag.toLowerCase());
  if (match === null) throw new RangeError(`Incorrect locale information provided: ${stringify(tag)}`);
  let [, language, script, region, variants, extensions, hidden] = match;
  if (variants !== "" || /-[^u]-|-u-.*-u-/.test(extensions) || RENAMED.includes(language)) refused("Intl", "the locale", tag);
  script = script && script[0].toUpperCase() + script.slice(1);
  region = region?.toUpperCase();
  const keys = {};
  let key;
  for (const part of extensions.split("-").slice(2)) {
    if (part.length === 2) keys[key = part] ??= "";
    else if (key !== undefined) keys[key] += (keys[key] === "" ? "" : "-") + part;
    else refused("Intl", "the locale", tag);
  }
  for (const name in keys) if (keys[name] === "true") keys[name] = "";
  return { language, script, region, base: [language, script, region].filter(Boolean).join("-"), keys, hidden: hidden ?? "" };
};
const keyed = (base, keys) => {
  const parts = Object.keys(keys).sort().map((key) => (keys[key] === "" ? key : `${key}-${keys[key]}`));
  return parts.length === 0 ? base : `${base}-u-${parts.join("-")}`;
};
const canonicalTag = (tag) => {
  const { base, keys, hidden } = tagOf(tag);
  return keyed(base, keys) + hidden;
};
/** The tags of a list of locales, in their usual form. */
const canonicalTags = (locales) => {
  if (locales === undefined) return [];
  if (locales === null) throw new TypeError("Cannot convert undefined or null to object");
  const list = typeof locales === "string" || isLocale(locales) ? [locales] : Array.from(Object(locales));
  const tags = list.map((locale) => {
    if (typeof locale !== "string" && (typeof locale !== "object" || locale === null)) throw new TypeError("Incorrect locale information provided");
    return canonicalTag(String(locale));
  });
  return [...new Set(tags)];
};
const isEnglish = ({ base }) => base === "en" || base === "en-US";

/** One option: `undefined` if it is not given. `values` are those that ECMA-402 has, `here` those that are honoured. */
const option = (what, options, name, values, fallback, here = values) => {
  const value = options[name];
  if (value === undefined) return fallback;
  const text = String(value);
  if (!values.includes(text)) throw new RangeError(`Value ${text} out of range for Intl.${what} options property ${name}`);
  if (!here.includes(text)) refused(`Intl.${what}`, `the option ${name}`, text);
  return text;
};
const whole = (options, name, least, most, fallback) => {
  const value = options[name];
  if (value === undefined) return fallback;
  const number = Number(value);
  if (!(number >= least && number <= most)) throw new RangeError(`${name} value is out of range.`);
  return Math.floor(number);
};
const optionsOf = (options) => {
  if (options === null) throw new TypeError("Cannot convert undefined or null to object");
  return options === undefined ? {} : Object(options);
};
const AMERICAN = tagOf("en-US");
const MATCHERS = ["lookup", "best fit"];
const ONLY = { ca: ["calendar", "gregory"], nu: ["numberingSystem", "latn"] };
/** The locale that is taken, and the values of those of its keys that have a meaning. */
const chosen = (what, locales, options, meant) => {
  option(what, options, "localeMatcher", MATCHERS);
  const tag = locales === undefined || locales === "en-US" ? AMERICAN : tagOf(canonicalTags(locales)[0] ?? "en-US");
  if (!isEnglish(tag) || "va" in tag.keys) refused(`Intl.${what}`, "the locale", keyed(tag.base, tag.keys));
  const keys = {};
  for (const key of meant) {
    const [name, only] = ONLY[key] ?? [];
    const given = name && options[name];
    if (given !== undefined && String(given) !== only) refused(`Intl.${what}`, `the option ${name}`, given);
    if (!(key in tag.keys)) continue;
    if (only !== undefined && tag.keys[key] !== only) refused(`Intl.${what}`, `the ${name}`, tag.keys[key]);
    keys[key] = tag.keys[key];
  }
  return { locale: keyed(tag.base, keys), base: tag.base, keys };
};

const states = new WeakMap();
const stateOf = (object, type, name) => {
  const state = states.get(object);
  if (state === undefined || !(object instanceof type)) throw new TypeError(`Method Intl.${type.name}.prototype.${name} called on incompatible receiver`);
  return state;
};
const Intl = Object.defineProperty({}, Symbol.toStringTag, { value: "Intl", configurable: true });
/** Adds a class whose objects have a state, which `make` gives. `isCalled` is for those that work without `new`. */
const kind = (name, make, isCalled, resolved) => {
  const type = { [name]: function (locales, options) {
    if (new.target === undefined && !isCalled) throw new TypeError(`Constructor Intl.${name} requires 'new'`);
    const object = new.target === undefined ? Object.create(type.prototype) : this;
    states.set(object, make(locales, options));
    return object;
  } }[name];
  Object.defineProperty(type, "length", { value: 0, configurable: true });
  Object.defineProperty(type, "prototype", { writable: false });
  Object.defineProperty(type.prototype, "constructor", { enumerable: false });
  Object.defineProperty(type.prototype, Symbol.toStringTag, { value: `Intl.${name}`, configurable: true });
  Object.defineProperty(Intl, name, { value: type, configurable: true, writable: true });
  method(type, "resolvedOptions", function resolvedOptions() {
    return Object.fromEntries(Object.entries(resolved(stateOf(this, type, "resolvedOptions"))).filter(([, value]) => value !== undefined));
  });
  Object.defineProperty(type, "supportedLocalesOf", { value: function supportedLocalesOf(wanted, options) {
    option(name, optionsOf(options), "localeMatcher", MATCHERS);
    return canonicalTags(wanted).filter((tag) => isEnglish(tagOf(tag)));
  }, configurable: true, writable: true });
  return type;
};
/** Adds `format`-like properties: functions that are bound to their object. */
const boundGetter = (type, name, call) => getter(type, name, function () {
  const state = stateOf(this, type, name);
  return state[name] ??= Object.defineProperty((...given) => call(state, ...given), "name", { value: "" });
});
const joined = (parts) => parts.map(({ value }) => value).join("");
