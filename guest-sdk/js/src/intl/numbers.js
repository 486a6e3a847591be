// Numbers: decimal, percent, currencies and durations.
/** Values of options: those that ECMA-402 has, and those that are honoured where these are fewer. */
const LISTS = {
  style: ["decimal", "percent", "currency", "unit"], currencyDisplay: ["code", "symbol", "narrowSymbol", "name"], currencySign: ["standard", "accounting"],
  unitDisplay: ["short", "narrow", "long"], notation: ["standard", "scientific", "engineering", "compact"], useGrouping: ["min2", "auto", "always"],
  signDisplay: ["auto", "never", "always", "exceptZero", "negative"], roundingPriority: ["auto", "morePrecision", "lessPrecision"],
  trailingZeroDisplay: ["auto", "stripIfInteger"], roundingMode: ["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"],
};
const FEWER = { currencyDisplay: ["code", "symbol"], currencySign: ["standard"], notation: ["standard"], roundingPriority: ["auto"], trailingZeroDisplay: ["auto"], roundingMode: ["halfExpand"] };
const listed = (what, options, name, fallback) => option(what, options, name, LISTS[name], fallback, FEWER[name]);
const UNITS = {
  year: ["yr", "yrs", "y"], month: ["mth", "mths", "m"], week: ["wk", "wks", "w"], day: ["day", "days", "d"], hour: ["hr", "hr", "h"],
  minute: ["min", "min", "m"], second: ["sec", "sec", "s"], millisecond: ["ms", "ms", "ms"], microsecond: ["μs", "μs", "μs"], nanosecond: ["ns", "ns", "ns"],
};
const OTHER_UNITS = `acre bit byte celsius centimeter degree fahrenheit fluid-ounce foot gallon gigabit gigabyte gram hectare inch kilobit kilobyte
  kilogram kilometer liter megabit megabyte meter mile mile-scandinavian milliliter millimeter ounce percent petabyte pound stone terabit terabyte yard`.split(/\s+/);
const SYMBOLS = {
  AUD: "A$", BRL: "R$", CAD: "CA$", CNY: "CN¥", EUR: "€", GBP: "£", HKD: "HK$", ILS: "₪", INR: "₹", JPY: "¥", KRW: "₩", MXN: "MX$", NZD: "NZ$",
  PHP: "₱", TWD: "NT$", USD: "$", VND: "₫", XAF: "FCFA", XCD: "EC$", XCG: "Cg.", XOF: "F\u202fCFA", XPF: "CFPF", XXX: "¤",
};
/** The currencies with other than two digits, old ones included. */
const CENTS = new Map([
  [0, "ADP AFN ALL BIF BYR CLP DJF ESP GNF IQD IRR ISK ITL JPY KMF KPW KRW LAK LBP LUF MGA MGF MMK MRO PYG RSD RWF SLL SOS STD SYP TMM TRL UGX UYI VND VUV XAF XOF XPF YER ZMK ZWD"],
  [3, "BHD JOD KWD LYD OMR TND"], [4, "CLF UYW"],
].flatMap(([digits, codes]) => codes.split(" ").map((code) => [code, digits])));

/** How a number is rounded and padded; the same for numbers and plurals. */
const digitsOf = (options, least, most) => {
  const integer = whole(options, "minimumIntegerDigits", 1, 21, 1);
  const { minimumSignificantDigits, maximumSignificantDigits } = options;
  if (minimumSignificantDigits !== undefined || maximumSignificantDigits !== undefined) {
    const minimum = whole(options, "minimumSignificantDigits", 1, 21, 1);
    return { integer, significant: [minimum, whole(options, "maximumSignificantDigits", minimum, 21, 21)] };
  }
  let minimum = whole(options, "minimumFractionDigits", 0, 100), maximum = whole(options, "maximumFractionDigits", 0, 100);
  if (minimum === undefined) minimum = maximum === undefined ? least : Math.min(least, maximum);
  else if (maximum === undefined) maximum = Math.max(most, minimum);
  maximum ??= Math.max(most, minimum);
  if (minimum > maximum) throw new RangeError("maximumFractionDigits value is out of range.");
  return { integer, fraction: [minimum, maximum] };
};
const rounding = (what, options) => {
  if (options.roundingIncrement !== undefined && Number(options.roundingIncrement) !== 1) refused(`Intl.${what}`, "the option roundingIncrement", options.roundingIncrement);
  listed(what, options, "roundingMode", "halfExpand");
  listed(what, options, "roundingPriority", "auto");
  listed(what, options, "trailingZeroDisplay", "auto");
};
const ROUNDED = { roundingIncrement: 1, roundingMode: "halfExpand", roundingPriority: "auto", trailingZeroDisplay: "auto" };
const resolvedDigits = ({ integer, fraction, significant }) => ({
  minimumIntegerDigits: integer, minimumFractionDigits: fraction?.[0], maximumFractionDigits: fraction?.[1],
  minimumSignificantDigits: significant?.[0], maximumSignificantDigits: significant?.[1],
});
const DECIMAL = /^([+-]?)(?:(\d+)\.?(\d*)|\.(\d+))(?:[eE]([+-]?\d+))?$/;
/** The sign, the digits and the place of the point, of a number, a BigInt or a text. */
const decimalOf = (value) => {
  if (typeof value === "object" && value !== null) value = value[Symbol.toPrimitive]?.("number") ?? value.valueOf();
  if (typeof value !== "string" && typeof value !== "bigint") value = Number(value);
  let text = String(value).trim();
  if (Object.is(value, -0)) text = "-0";
  const match = DECIMAL.exec(text);
  if (match === null) {
    const number = Number(text);
    if (number - number !== 0) return { isNegative: number < 0, special: number !== number ? "NaN" : "∞" };
    // An empty text is zero, and a number may be written with another base.
    return decimalOf(text === "" ? 0 : BigInt(text));
  }
  const [, sign, whole = "", after = "", only = "", power = "0"] = match, fraction = after + only;
  if (Math.abs(Number(power)) > 10000) return decimalOf(Number(text));
  return { isNegative: sign === "-", digits: whole + fraction, point: whole.length + Number(power) };
};
/** The digits before and behind the point, rounded half away from zero and padded. */
const roundedOf = ({ digits, point }, { integer, fraction, significant }) => {
  const zeros = /^0*/.exec(digits)[0].length;
  [digits, point] = zeros === digits.length ? ["", 0] : [digits.slice(zeros), point - zeros];
  const isZero = digits === "";
  const kept = significant ? significant[1] : point + fraction[1];
  if (digits.length > kept) {
    const isUp = kept >= 0 && digits[kept] >= "5";
    digits = kept > 0 ? digits.slice(0, kept) : "";
    if (isUp) {
      const raised = (BigInt(digits || "0") + 1n).toString();
      point += raised.length - kept;
      digits = raised;
    }
  }
  digits = digits.replace(/0+$/, "");
  if (digits === "") point = 0;
  let before = point > 0 ? digits.slice(0, point).padEnd(point, "0") : "", behind = point > 0 ? digits.slice(point) : "0".repeat(-point) + digits;
  const least = significant ? Math.max(0, significant[0] - (isZero ? 1 : point)) : fraction[0];
  behind = behind.padEnd(least, "0");
  return [before.padStart(integer, "0"), behind];
};
const grouped = (text, use) => {
  if (use === false || text.length < (use === "min2" ? 5 : 4)) return [text];
  const head = text.length % 3, groups = head > 0 ? [text.slice(0, head)] : [];
  for (let at = head; at < text.length; at += 3) groups.push(text.slice(at, at + 3));
  return groups;
};
/** The parts of a number without sign and unit. */
const digitParts = (decimal, state) => {
  if (decimal.special === "NaN") return [{ type: "nan", value: "NaN" }];
  if (decimal.special) return [{ type: "infinity", value: "∞" }];
  const [before, behind] = roundedOf(decimal, state), parts = [];
  for (const group of grouped(before, state.useGrouping)) parts.push({ type: "group", value: "," }, { type: "integer", value: group });
  parts.shift();
  if (behind !== "") parts.push({ type: "decimal", value: "." }, { type: "fraction", value: behind });
  return parts;
};
const isOne = (parts) => !parts.some(({ type }) => type === "decimal") && Number(joined(parts.filter(({ type }) => type === "integer"))) === 1;
const numberParts = (state, value) => {
  const decimal = decimalOf(value), { style, currency, unit, signDisplay } = state;
  if (style === "percent" && !decimal.special) decimal.point += 2;
  let parts = digitParts(decimal, state);
  const isZero = parts.every(({ type, value }) => (type !== "integer" && type !== "fraction" && type !== "infinity") || /^0+$/.test(value));
  const isMinus = decimal.isNegative && { auto: true, always: true, never: false, exceptZero: !isZero, negative: !isZero }[signDisplay];
  const isPlus = !decimal.isNegative && (signDisplay === "always" || (signDisplay === "exceptZero" && !isZero));
  if (style === "percent") parts.push({ type: "percentSign", value: "%" });
  if (style === "unit") {
    const [one, many, narrow] = UNITS[unit], isSingle = isOne(parts);
    if (state.unitDisplay === "narrow") parts.push({ type: "unit", value: narrow });
    else parts.push({ type: "literal", value: " " }, { type: "unit", value: state.unitDisplay === "long" ? unit + (isSingle ? "" : "s") : isSingle ? one : many });
  }
  if (style === "currency") {
    const symbol = state.currencyDisplay === "code" ? currency : SYMBOLS[currency] ?? currency;
    parts = [{ type: "currency", value: symbol }, ...(/[A-Z.]$/.test(symbol) && !decimal.special ? [{ type: "literal", value: "\u00a0" }] : []), ...parts];
  }
  if (isMinus) parts.unshift({ type: "minusSign", value: "-" });
  if (isPlus) parts.unshift({ type: "plusSign", value: "+" });
  return parts;
};
const numberState = (locales, given) => {
  const what = "NumberFormat", options = optionsOf(given), { locale } = chosen(what, locales, options, ["nu"]);
  const style = listed(what, options, "style", "decimal");
  let { currency, unit } = options;
  if (currency !== undefined && !/^[A-Za-z]{3}$/.test(currency)) throw new RangeError(`Invalid currency code : ${currency}`);
  if (style === "currency" && currency === undefined) throw new TypeError("Currency code is required with currency style.");
  const currencyDisplay = listed(what, options, "currencyDisplay", "symbol");
  listed(what, options, "currencySign", "standard");
  if (style === "unit" && unit === undefined) throw new TypeError("Invalid unit argument for Intl.NumberFormat() ''");
  if (unit !== undefined && !Object.hasOwn(UNITS, unit)) {
    if (String(unit).split("-per-").every((part) => Object.hasOwn(UNITS, part) || OTHER_UNITS.includes(part))) refused(`Intl.${what}`, "the unit", String(unit));
    throw new RangeError(`Invalid unit argument for Intl.NumberFormat() '${unit}'`);
  }
  const unitDisplay = listed(what, options, "unitDisplay", "short");
  listed(what, options, "notation", "standard");
  currency = currency?.toUpperCase();
  const cents = style === "currency" ? CENTS.get(currency) ?? 2 : 0;
  const digits = digitsOf(options, cents, style === "decimal" || style === "unit" ? 3 : cents);
  rounding(what, options);
  let use = options.useGrouping;
  if (use === undefined || use === "true" || use === "false") use = "auto";
  else if (use === true) use = "always";
  else if (!use) use = false;
  else use = listed(what, options, "useGrouping");
  const signDisplay = listed(what, options, "signDisplay", "auto");
  return { locale, style, currency, unit, currencyDisplay, unitDisplay, ...digits, useGrouping: use, signDisplay };
};
const NumberFormat = kind("NumberFormat", numberState, true, (state) => {
  const { locale, style, useGrouping, signDisplay } = state, isMoney = style === "currency", isUnit = style === "unit";
  return {
    locale, numberingSystem: "latn", style, currency: isMoney ? state.currency : undefined, currencyDisplay: isMoney ? state.currencyDisplay : undefined,
    currencySign: isMoney ? "standard" : undefined, unit: isUnit ? state.unit : undefined, unitDisplay: isUnit ? state.unitDisplay : undefined,
    ...resolvedDigits(state), useGrouping, notation: "standard", signDisplay, ...ROUNDED,
  };
});
for (const name of ["formatRange", "formatRangeToParts"]) method(NumberFormat, name, () => refused("Intl.NumberFormat", "the method", name));
boundGetter(NumberFormat, "format", (state, value) => joined(numberParts(state, value)));
method(NumberFormat, "formatToParts", function formatToParts(value) {
  return numberParts(stateOf(this, NumberFormat, "formatToParts"), value);
});
const PLAIN = numberState();
for (const type of [Number, BigInt]) {
  const { valueOf } = type.prototype;
  method(type, "toLocaleString", function toLocaleString(locales, options) {
    const state = locales === undefined && options === undefined ? PLAIN : numberState(locales, options);
    return joined(numberParts(state, valueOf.call(this)));
  });
}
