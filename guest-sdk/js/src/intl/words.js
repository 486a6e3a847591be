// Plurals, lists, spans of time, and the order of texts.
const ordinal = (number) => {
  const [one, two] = [number % 10, number % 100];
  if (one === 1 && two !== 11) return "one";
  if (one === 2 && two !== 12) return "two";
  return one === 3 && two !== 13 ? "few" : "other";
};
const pluralState = (locales, given) => {
  const what = "PluralRules", options = optionsOf(given), { locale } = chosen(what, locales, options, []);
  const type = option(what, options, "type", ["cardinal", "ordinal"], "cardinal"), digits = digitsOf(options, 0, 3);
  rounding(what, options);
  return { locale, type, ...digits };
};
const PluralRules = kind("PluralRules", pluralState, false, (state) => ({
  locale: state.locale, type: state.type, ...resolvedDigits(state),
  pluralCategories: state.type === "ordinal" ? ["few", "one", "two", "other"] : ["one", "other"], ...ROUNDED,
}));
method(PluralRules, "select", function select(value) {
  const state = stateOf(this, PluralRules, "select"), decimal = decimalOf(Number(value));
  if (decimal.special) return "other";
  const [before, behind] = roundedOf(decimal, state);
  if (state.type === "cardinal") return behind === "" && /^0*1$/.test(before) ? "one" : "other";
  return /[1-9]/.test(behind) ? "other" : ordinal(Number(before.slice(-2)));
});
method(PluralRules, "selectRange", () => refused("Intl.PluralRules", "the method", "selectRange"));

const BETWEEN = { conjunction: { long: [", ", " and ", ", and "], short: [", ", " & ", ", & "], narrow: [", ", ", ", ", "] },
  disjunction: { long: [", ", " or ", ", or "], short: [", ", " or ", ", or "], narrow: [", ", " or ", ", or "] },
  unit: { long: [", ", ", ", ", "], short: [", ", ", ", ", "], narrow: [" ", " ", " "] } };
const ListFormat = kind("ListFormat", (locales, given) => {
  if (given !== undefined && (typeof given !== "object" || given === null)) throw new TypeError("Incorrect ListFormat information provided");
  const what = "ListFormat", options = optionsOf(given), { locale } = chosen(what, locales, options, []);
  return { locale, type: option(what, options, "type", ["conjunction", "disjunction", "unit"], "conjunction"), style: option(what, options, "style", ["long", "short", "narrow"], "long") };
}, false, ({ locale, type, style }) => ({ locale, type, style }));
const listParts = ({ type, style }, list) => {
  const items = list === undefined ? [] : [...list], parts = [], [middle, pair, last] = BETWEEN[type][style];
  items.forEach((item, at) => {
    if (typeof item !== "string") throw new TypeError("Iterable yielded a non-String value");
    if (at > 0) parts.push({ type: "literal", value: items.length === 2 ? pair : at === items.length - 1 ? last : middle });
    parts.push({ type: "element", value: item });
  });
  return parts;
};
method(ListFormat, "format", function format(list) { return joined(listParts(stateOf(this, ListFormat, "format"), list)); });
method(ListFormat, "formatToParts", function formatToParts(list) { return listParts(stateOf(this, ListFormat, "formatToParts"), list); });

/** Of each unit: its long names are regular, then its short ones, its narrow one, and the names of the last, this and the next. */
const SPANS = { year: ["yr.", "yr.", "y"], quarter: ["qtr.", "qtrs.", "q"], month: ["mo.", "mo.", "mo"], week: ["wk.", "wk.", "w"], day: ["day", "days", "d"],
  hour: ["hr.", "hr.", "h"], minute: ["min.", "min.", "m"], second: ["sec.", "sec.", "s"] };
const NAMED = { day: { "-1": "yesterday", 0: "today", 1: "tomorrow" }, hour: { 0: "this hour" }, minute: { 0: "this minute" }, second: { 0: "now" } };
const namedSpan = (unit, value, style) => {
  if (unit in NAMED) return NAMED[unit][value];
  const word = { "-1": "last", 0: "this", 1: "next" }[value];
  return word && `${word} ${style === "long" ? unit : SPANS[unit][0]}`;
};
const RelativeTimeFormat = kind("RelativeTimeFormat", (locales, given) => {
  const what = "RelativeTimeFormat", options = optionsOf(given), { locale } = chosen(what, locales, options, ["nu"]);
  const style = option(what, options, "style", ["long", "short", "narrow"], "long");
  return { locale, style, numeric: option(what, options, "numeric", ["always", "auto"], "always"), digits: PLAIN };
}, false, ({ locale, style, numeric }) => ({ locale, style, numeric, numberingSystem: "latn" }));
const spanParts = ({ style, numeric, digits }, given, named, name) => {
  const value = Number(given), unit = String(named).replace(/s$/, "");
  if (!(unit in SPANS)) throw new RangeError(`Invalid unit argument for Intl.RelativeTimeFormat.prototype.${name}() '${named}'`);
  if (value - value !== 0) throw new RangeError(`Value need to be finite number for Intl.RelativeTimeFormat.prototype.${name}()`);
  const word = numeric === "auto" ? namedSpan(unit, value, style) : undefined;
  if (word !== undefined) return [{ type: "literal", value: word }];
  const parts = digitParts(decimalOf(Math.abs(value)), digits), isSingle = isOne(parts), [one, many, narrow] = SPANS[unit];
  const told = style === "long" ? ` ${unit}${isSingle ? "" : "s"}` : style === "narrow" ? narrow : ` ${isSingle ? one : many}`;
  const isPast = value < 0 || Object.is(value, -0), inner = parts.map((part) => ({ ...part, unit }));
  return isPast ? [...inner, { type: "literal", value: `${told} ago` }] : [{ type: "literal", value: "in " }, ...inner, { type: "literal", value: told }];
};
method(RelativeTimeFormat, "format", function format(value, unit) { return joined(spanParts(stateOf(this, RelativeTimeFormat, "format"), value, unit, "format")); });
method(RelativeTimeFormat, "formatToParts", function formatToParts(value, unit) {
  return spanParts(stateOf(this, RelativeTimeFormat, "formatToParts"), value, unit, "formatToParts");
});

const collatorState = (locales, given) => {
  const what = "Collator", options = optionsOf(given), { base, keys } = chosen(what, locales, options, ["kn", "kf"]);
  const usage = option(what, options, "usage", ["sort", "search"], "sort");
  if (options.collation !== undefined && String(options.collation) !== "default") refused("Intl.Collator", "the option collation", options.collation);
  const numeric = options.numeric === undefined ? keys.kn === "" : Boolean(options.numeric);
  if (keys.kn !== undefined && keys.kn !== (numeric ? "" : "false")) delete keys.kn;
  const caseFirst = option(what, options, "caseFirst", ["upper", "lower", "false"], ["upper", "lower"].includes(keys.kf) ? keys.kf : "false");
  if (keys.kf !== undefined && keys.kf !== caseFirst) delete keys.kf;
  const sensitivity = option(what, options, "sensitivity", ["base", "accent", "case", "variant"], "variant");
  const ignorePunctuation = Boolean(options.ignorePunctuation);
  const order = [sensitivity, numeric && "numeric", caseFirst !== "false" && caseFirst, ignorePunctuation && "shifted"].filter(Boolean).join(" ");
  return { locale: keyed(base, keys), usage, sensitivity, ignorePunctuation, numeric, caseFirst, order };
};
const Collator = kind("Collator", collatorState, true, ({ locale, usage, sensitivity, ignorePunctuation, numeric, caseFirst }) =>
  ({ locale, usage, sensitivity, ignorePunctuation, collation: "default", numeric, caseFirst }));
const collated = (order, one, other) => runtime.collate(order, String(one).toWellFormed(), String(other).toWellFormed());
boundGetter(Collator, "compare", ({ order }, one, other) => collated(order, one, other));
method(String, "localeCompare", function localeCompare(other, locales, options) {
  const order = locales === undefined && options === undefined ? "variant" : collatorState(locales, options).order;
  return collated(order, this, other);
});
for (const name of ["toLocaleUpperCase", "toLocaleLowerCase"]) {
  const plain = String.prototype[name];
  method(String, name, function (locales) {
    // Only these have rules of their own.
    const [tag] = canonicalTags(locales);
    if (tag !== undefined && /^(tr|az|lt|el|hy)\b/.test(tag)) refused(name, "the locale", tag);
    return plain.call(this);
  });
}
