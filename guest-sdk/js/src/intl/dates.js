// Dates and times with the zones of IANA.
const MONTHS = "January February March April May June July August September October November December".split(" ");
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const ERAS = { long: ["Before Christ", "Anno Domini"], short: ["BC", "AD"], narrow: ["B", "A"] };
/** The order of the fields of a date, by the fields: `E` weekday, `G` era, `y`, `M` a month of digits, `L` of letters, `d`. */
const ORDERS = {
  d: "d", M: "M", Md: "M/d", L: "L", Ld: "L d", y: "y", yM: "M/y", yMd: "M/d/y", yL: "L y", yLd: "L d, y",
  Gy: "y G", GyM: "M y G", GyMd: "M/d/y G", GyL: "L y G", GyLd: "L d, y G", GMd: "M/d G", GLd: "L d G",
  E: "E", Ed: "d E", EMd: "E, M/d", ELd: "E, L d", EyMd: "E, M/d/y", EyLd: "E, L d, y", EGMd: "E, M/d G", EGLd: "E, L d G", EGyLd: "E, L d, y G",
};
const TIMES = ["h", "hm", "hms", "m", "ms", "s"];
const WIDTHS = { weekday: ["narrow", "short", "long"], era: ["narrow", "short", "long"], year: ["2-digit", "numeric"],
  month: ["2-digit", "numeric", "narrow", "short", "long"], day: ["2-digit", "numeric"], dayPeriod: ["narrow", "short", "long"],
  hour: ["2-digit", "numeric"], minute: ["2-digit", "numeric"], second: ["2-digit", "numeric"] };
const ZONE_NAMES = ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];
const STYLES = ["full", "long", "medium", "short"];
const DATE_STYLES = {
  full: { weekday: "long", year: "numeric", month: "long", day: "numeric" }, long: { year: "numeric", month: "long", day: "numeric" },
  medium: { year: "numeric", month: "short", day: "numeric" }, short: { year: "2-digit", month: "numeric", day: "numeric" },
};
const CLOCK = { hour: "numeric", minute: "2-digit", second: "2-digit" };
const TIME_STYLES = { full: { ...CLOCK, timeZoneName: "long" }, long: { ...CLOCK, timeZoneName: "short" }, medium: CLOCK, short: { hour: "numeric", minute: "2-digit" } };
const DATE_FIELDS = ["weekday", "year", "month", "day"], TIME_FIELDS = ["dayPeriod", "hour", "minute", "second", "fractionalSecondDigits"];

const HOURS = { h11: (hour) => hour % 12, h12: (hour) => hour % 12 || 12, h23: (hour) => hour, h24: (hour) => hour || 24 };
const CYCLES = Object.keys(HOURS), KEYS = ["ca", "hc", "nu"], FORMATS = ["basic", "best fit"], HERE = ZONE_NAMES.slice(0, 4);
const isHalf = (cycle) => cycle === "h11" || cycle === "h12";

const OFFSET = /^([+-])([01]\d|2[0-3])(?::?([0-5]\d))?$/;
const two = (number) => String(number).padStart(2, "0");
const zoneOf = (value) => {
  if (value === undefined) return "UTC";
  const text = String(value), match = OFFSET.exec(text);
  const zone = match === null ? host.zone(text) : `${match[1]}${match[2]}:${match[3] ?? "00"}`;
  if (zone === "") throw new RangeError(`Invalid time zone specified: ${text}`);
  return zone === "-00:00" ? "+00:00" : zone;
};
const secondsOf = (zone) => Number(`${zone[0]}1`) * (Number(zone.slice(1, 3)) * 3600 + Number(zone.slice(4)) * 60);
const isFixed = (zone) => zone[0] === "+" || zone[0] === "-";
const offsetAt = (zone, second) => (zone === "UTC" ? 0 : isFixed(zone) ? secondsOf(zone) : runtime.zoneAt(zone, second));
const offsetText = (offset, isLong) => {
  if (offset === 0) return "GMT";
  const all = Math.abs(offset), hours = Math.floor(all / 3600), minutes = Math.floor(all / 60) % 60, seconds = all % 60;
  const rest = seconds > 0 ? `:${two(minutes)}:${two(seconds)}` : isLong || minutes > 0 ? `:${two(minutes)}` : "";
  return `GMT${offset < 0 ? "-" : "+"}${isLong ? two(hours) : hours}${rest}`;
};
/** Other names of UTC whose English name is another one. */
const GREENWICH = ["etc/gmt+0", "etc/gmt-0", "etc/gmt0", "etc/greenwich", "greenwich"];
const zoneText = ({ zone, isGreenwich }, second, width) => {
  if (isGreenwich) return width === "long" && second >= 0 ? "Greenwich Mean Time" : "GMT";
  const name = width.endsWith("Offset") || isFixed(zone) ? "" : runtime.zoneName(zone, second, width === "long");
  return name === "" ? offsetText(offsetAt(zone, second), width.startsWith("long")) : name;
};

/** The pattern of the fields: a list of texts and of fields with their widths. */
const patternOf = (fields, cycle) => {
  const { weekday, era, year, month, day, dayPeriod, hour, minute, second, fractionalSecondDigits: digits, timeZoneName } = fields;
  const no = () => refused("Intl.DateTimeFormat", "the combination of", Object.keys(fields).filter((name) => fields[name] !== undefined).join(", "));
  const isDigits = month === "numeric" || month === "2-digit";
  const date = [weekday && "E", era && "G", year && "y", month && (isDigits ? "M" : "L"), day && "d"].filter(Boolean).join("");
  const letters = { E: ["weekday", weekday], G: ["era", era], y: ["year", year], M: ["month", month], L: ["month", month], d: ["day", day] };
  const pattern = [];
  if (date !== "") {
    if (!(date in ORDERS)) no();
    for (const letter of ORDERS[date]) pattern.push(letters[letter] ?? letter);
  }
  const isClock = hour !== undefined || minute !== undefined || second !== undefined;
  const isTwelve = isHalf(cycle), isPeriod = dayPeriod !== undefined && (hour === undefined || isTwelve);
  const time = [];
  if (isClock) {
    let kept = [hour && "h", minute && "m", second && "s"].filter(Boolean).join("");
    if (digits !== undefined && (kept === "hm" || kept === "m")) kept += "s";
    if (!TIMES.includes(kept) || (digits !== undefined && (kept === "h" || (kept === "s" && second === "2-digit"))) || (kept === "h" && !isTwelve && timeZoneName?.endsWith("Offset")) || (isPeriod && hour === undefined)) no();
    for (const letter of kept) {
      if (time.length > 0) time.push(":");
      const isAlone = kept.length === 1;
      if (letter === "h") time.push(["hour", isTwelve && hour !== "2-digit" ? "numeric" : "2-digit"]);
      if (letter === "m") time.push(["minute", isAlone ? "numeric" : "2-digit"]);
      if (letter === "s") time.push(["second", isAlone ? "numeric" : "2-digit"]);
    }
    if (digits !== undefined) time.push(".", ["fractionalSecond", digits]);
    if (hour !== undefined && isPeriod) time.push(kept === "h" || timeZoneName === undefined ? " " : "\u202f", ["dayPeriod", dayPeriod]);
    else if (hour !== undefined && isTwelve) time.push("\u202f", ["dayPeriod", "half"]);
  } else if (digits !== undefined) {
    if (isPeriod) no();
    time.push(["fractionalSecond", digits]);
  } else if (isPeriod) {
    if (timeZoneName !== undefined) no();
    time.push(["dayPeriod", dayPeriod]);
  }
  if (timeZoneName !== undefined) time.push(...(time.length > 0 ? [" "] : []), ["timeZoneName", timeZoneName]);
  if (pattern.length > 0 && time.length > 0) pattern.push(date === "E" && hour && minute && !digits && !timeZoneName ? " " : month === "long" ? " at " : ", ");
  return [...pattern, ...time];
};

const dateState = (locales, wanted, needed = "any", defaults = "date") => {
  const what = "DateTimeFormat", options = optionsOf(wanted), { base, keys } = chosen(what, locales, options, KEYS);
  const hour12 = options.hour12 === undefined ? undefined : Boolean(options.hour12);
  const given = option(what, options, "hourCycle", CYCLES), tagged = keys.hc in HOURS ? keys.hc : undefined;
  if (tagged === undefined) delete keys.hc;
  let cycle = given ?? tagged ?? "h12";
  if (hour12 !== undefined) cycle = tagged !== undefined && isHalf(tagged) === hour12 ? tagged : hour12 ? "h12" : "h23";
  const zone = zoneOf(options.timeZone), isGreenwich = GREENWICH.includes(String(options.timeZone).toLowerCase());
  let fields = {};
  for (const name in WIDTHS) fields[name] = option(what, options, name, WIDTHS[name]);
  fields.fractionalSecondDigits = whole(options, "fractionalSecondDigits", 1, 3);
  fields.timeZoneName = option(what, options, "timeZoneName", ZONE_NAMES, undefined, HERE);
  option(what, options, "formatMatcher", FORMATS);
  const dateStyle = option(what, options, "dateStyle", STYLES), timeStyle = option(what, options, "timeStyle", STYLES);
  if (dateStyle !== undefined || timeStyle !== undefined) {
    const other = Object.keys(fields).find((name) => fields[name] !== undefined);
    if (other !== undefined) throw new TypeError(`Can't set option ${other} when ${dateStyle === undefined ? "timeStyle" : "dateStyle"} is used`);
    if ((needed === "date" && timeStyle !== undefined) || (needed === "time" && dateStyle !== undefined)) throw new TypeError(`Invalid option : ${needed === "date" ? "timeStyle" : "dateStyle"}`);
    fields = { ...DATE_STYLES[dateStyle], ...TIME_STYLES[timeStyle] };
    // Its pattern is that of the locale's own cycle.
    if (timeStyle !== undefined && tagged !== undefined && !isHalf(tagged)) fields.hour = "2-digit";
  } else {
    const lacks = (name) => fields[name] === undefined;
    if ((needed === "time" || DATE_FIELDS.every(lacks)) && (needed === "date" || TIME_FIELDS.every(lacks))) {
      if (defaults !== "time") Object.assign(fields, { year: "numeric", month: "numeric", day: "numeric" });
      if (defaults !== "date") Object.assign(fields, { hour: "numeric", minute: "numeric", second: "numeric" });
    }
  }
  if ((hour12 !== undefined || given !== undefined) && (fields.hour === undefined || cycle !== tagged)) delete keys.hc;
  return { locale: keyed(base, keys), zone, isGreenwich, cycle, fields, pattern: patternOf(fields, cycle), dateStyle, timeStyle };
};

const CYCLE = 146097 * 86400000;
const timeOf = (date) => {
  const time = date === undefined ? Date.now() : Number(date);
  if (!(Math.abs(time) <= 8.64e15)) throw new RangeError("Invalid time value");
  return Math.trunc(time) + 0;
};
const periodOf = (hour, isLater) =>
  hour === 12 && !isLater ? "noon" : hour < 12 ? "in the morning" : hour < 18 ? "in the afternoon" : hour < 21 ? "in the evening" : "at night";
const dateParts = (state, time) => {
  const { zone, cycle, pattern } = state;
  const second = Math.floor(time / 1000), local = time + offsetAt(zone, second) * 1000;
  // A date has no later time than this: the year is another one then, and all else repeats.
  const shift = local > 8.64e15 ? 1 : local < -8.64e15 ? -1 : 0, date = new Date(local - shift * CYCLE);
  const [hour, minute, rest] = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()];
  const value = (field, width) => {
    switch (field) {
      case "weekday": return width === "long" ? DAYS[date.getUTCDay()] : DAYS[date.getUTCDay()].slice(0, width === "short" ? 3 : 1);
      case "era": return ERAS[width][date.getUTCFullYear() + shift * 400 > 0 ? 1 : 0];
      case "year": {
        const year = date.getUTCFullYear() + shift * 400, counted = year > 0 ? year : 1 - year;
        return width === "2-digit" ? two(counted % 100) : String(counted);
      }
      case "month": {
        const month = date.getUTCMonth();
        if (width === "numeric" || width === "2-digit") return width === "numeric" ? String(month + 1) : two(month + 1);
        return width === "long" ? MONTHS[month] : MONTHS[month].slice(0, width === "short" ? 3 : 1);
      }
      case "day": return width === "numeric" ? String(date.getUTCDate()) : two(date.getUTCDate());
      case "hour": return width === "numeric" ? String(HOURS[cycle](hour)) : two(HOURS[cycle](hour));
      case "minute": return width === "numeric" ? String(minute) : two(minute);
      case "second": return width === "numeric" ? String(rest) : two(rest);
      case "fractionalSecond": return String(date.getUTCMilliseconds()).padStart(3, "0").slice(0, width);
      case "timeZoneName": return zoneText(state, second, width);
      default: {
        if (width === "half") return hour < 12 ? "AM" : "PM";
        const has = (name) => pattern.some(([other]) => other === name);
        const period = periodOf(hour, (has("minute") && minute > 0) || (has("second") && rest > 0));
        return period === "noon" && width === "narrow" ? "n" : period;
      }
    }
  };
  const parts = [];
  for (const piece of pattern) {
    if (typeof piece !== "string") parts.push({ type: piece[0], value: value(...piece) });
    else if (parts.at(-1)?.type === "literal") parts.at(-1).value += piece;
    else parts.push({ type: "literal", value: piece });
  }
  return parts;
};
const DateTimeFormat = kind("DateTimeFormat", (locales, options) => dateState(locales, options), true, (state) => {
  const { locale, zone, cycle, fields, pattern, dateStyle, timeStyle } = state, hasHour = fields.hour !== undefined, isStyled = dateStyle ?? timeStyle;
  const width = (name) => (isStyled === undefined ? pattern.find(([other]) => other === name)?.[1] : undefined);
  return {
    locale, calendar: "gregory", numberingSystem: "latn", timeZone: zone, hourCycle: hasHour ? cycle : undefined,
    hour12: hasHour ? isHalf(cycle) : undefined, weekday: width("weekday"), era: width("era"), year: width("year"),
    month: width("month"), day: width("day"), dayPeriod: width("dayPeriod") === "half" ? undefined : width("dayPeriod"), hour: width("hour"),
    minute: width("minute"), second: width("second"), fractionalSecondDigits: width("fractionalSecond"), timeZoneName: width("timeZoneName"), dateStyle, timeStyle,
  };
});
/** As text; the narrow blank before AM and PM is a plain one here, as in Node. */
const dateText = (state, time) => joined(dateParts(state, time)).replaceAll("\u202f", " ");
boundGetter(DateTimeFormat, "format", (state, date) => dateText(state, timeOf(date)));
method(DateTimeFormat, "formatToParts", function formatToParts(date) {
  return dateParts(stateOf(this, DateTimeFormat, "formatToParts"), timeOf(date));
});
for (const name of ["formatRange", "formatRangeToParts"]) method(DateTimeFormat, name, () => refused("Intl.DateTimeFormat", "the method", name));
const { getTime } = Date.prototype;
for (const [name, needed, defaults] of [["toLocaleString", "any", "all"], ["toLocaleDateString", "date", "date"], ["toLocaleTimeString", "time", "time"]]) {
  const plain = dateState(undefined, undefined, needed, defaults);
  method(Date, name, { [name](locales, options) {
    const time = getTime.call(this), isPlain = locales === undefined && options === undefined;
    return time !== time ? "Invalid Date" : dateText(isPlain ? plain : dateState(locales, options, needed, defaults), time);
  } }[name]);
}
