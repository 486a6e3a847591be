// `Intl.Locale`, and the functions of `Intl`.
const localeObjects = new WeakMap();
const isLocale = (value) => typeof value === "object" && value !== null && localeObjects.has(value);
const localeState = (object) => localeObjects.get(object) ?? wrong("Method Intl.Locale.prototype called on incompatible receiver");
class Locale {
  constructor(given, options) {
    if (typeof given !== "string" && (typeof given !== "object" || given === null)) throw new TypeError("First argument to Intl.Locale constructor can't be empty or missing");
    const tag = tagOf(String(given)), wanted = optionsOf(options);
    for (const [name, pattern] of [["language", /^[a-z]{2,3}$|^[a-z]{5,8}$/i], ["script", /^[a-z]{4}$/i], ["region", /^([a-z]{2}|\d{3})$/i]]) {
      if (wanted[name] === undefined) continue;
      if (!pattern.test(wanted[name])) throw new RangeError("Incorrect locale information provided");
      tag[name] = String(wanted[name]);
    }
    const { keys } = tag;
    for (const [key, name] of [["ca", "calendar"], ["co", "collation"], ["hc", "hourCycle"], ["kf", "caseFirst"], ["nu", "numberingSystem"]]) {
      if (wanted[name] === undefined) continue;
      if (!/^[a-z\d]{3,8}(-[a-z\d]{3,8})*$/i.test(wanted[name])) throw new RangeError(`Invalid ${name} : ${wanted[name]}`);
      keys[key] = String(wanted[name]).toLowerCase();
    }
    if (wanted.numeric !== undefined) keys.kn = wanted.numeric ? "" : "false";
    const { base } = tagOf([tag.language, tag.script, tag.region].filter(Boolean).join("-"));
    localeObjects.set(this, tagOf(keyed(base, keys) + tag.hidden));
  }
  toString() {
    const { base, keys, hidden } = localeState(this);
    return keyed(base, keys) + hidden;
  }
  get baseName() { return localeState(this).base; }
  get language() { return localeState(this).language; }
  get script() { return localeState(this).script; }
  get region() { return localeState(this).region; }
  get calendar() { return localeState(this).keys.ca; }
  get collation() { return localeState(this).keys.co; }
  get hourCycle() { return localeState(this).keys.hc; }
  get caseFirst() { return localeState(this).keys.kf; }
  get numberingSystem() { return localeState(this).keys.nu; }
  get numeric() { return localeState(this).keys.kn === ""; }
  get weekInfo() { return american(this, "weekInfo") && { firstDay: 7, weekend: [6, 7], minimalDays: 1 }; }
  get textInfo() { return american(this, "textInfo") && { direction: "ltr" }; }
  maximize() { return american(this, "maximize") && new Locale(keyed("en-Latn-US", localeState(this).keys)); }
  minimize() { return american(this, "minimize") && new Locale(keyed("en", localeState(this).keys)); }
}
/** True for English of the United States, whose facts are here. */
const american = (locale, name) => ["en", "en-US", "en-Latn-US", "en-Latn"].includes(localeState(locale).base) || refused(`Intl.Locale.prototype.${name}`, "the locale", String(locale));
Object.defineProperty(Locale.prototype, Symbol.toStringTag, { value: "Intl.Locale", configurable: true });
const SUPPORTED = {
  calendar: () => ["gregory"], collation: () => [], currency: () => refused("Intl.supportedValuesOf", "the list of", "currency"),
  numberingSystem: () => ["latn"], timeZone: () => host.zones().split(" "), unit: () => Object.keys(UNITS).sort(),
};
for (const [name, value] of Object.entries({
  Locale,
  getCanonicalLocales: (locales) => canonicalTags(locales),
  supportedValuesOf: (key) => {
    if (!Object.hasOwn(SUPPORTED, key)) throw new RangeError(`Invalid key : ${key}`);
    return SUPPORTED[key]();
  },
})) Object.defineProperty(Intl, name, { value, configurable: true, writable: true });
Object.defineProperty(globalThis, "Intl", { value: Intl, configurable: true, writable: true });
