// URL and URLSearchParams, as the URL standard has them. URLs themselves are parsed by the host functions `url` and `urlSet`.
const plus = (text) => text.replace(/\+/g, " ");
/** Text of which `%XX` are bytes; what is no escape stays. */
const percentDecoded = (text) => {
  if (!text.includes("%")) return text;
  const bytes = host.encode(text), out = new Uint8Array(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const hex = bytes[at] === 37 ? String.fromCharCode(bytes[at + 1], bytes[at + 2]) : "";
    if (/^[0-9A-Fa-f]{2}$/.test(hex)) {
      out[length++] = parseInt(hex, 16);
      at += 2;
    } else {
      out[length++] = bytes[at];
    }
  }
  return host.decode(out.subarray(0, length));
};
const formEncoded = (text) => encodeURIComponent(text.toWellFormed())
  .replace(/%20/g, "+").replace(/[!'()~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
const pairsOf = (text) => text.split("&").filter((piece) => piece !== "").map((piece) => {
  const at = piece.indexOf("=");
  const [name, value] = at < 0 ? [piece, ""] : [piece.slice(0, at), piece.slice(at + 1)];
  return [percentDecoded(plus(name)), percentDecoded(plus(value))];
});
const unpaired = () => wrong("URLSearchParams: each item of the list is a pair of a name and a value");

globalThis.URLSearchParams = class URLSearchParams {
  #pairs = []; #changed = () => {};
  constructor(init = "") {
    if (typeof init === "object" && init !== null || typeof init === "function") {
      if (init instanceof URLSearchParams) this.#pairs = [...init];
      else if (typeof init[Symbol.iterator] === "function") {
        this.#pairs = [...init].map((pair) => {
          const items = [...(pair ?? unpaired())];
          return items.length === 2 ? items.map((item) => String(item).toWellFormed()) : unpaired();
        });
      } else {
        this.#pairs = Object.keys(init).map((name) => [name.toWellFormed(), String(init[name]).toWellFormed()]);
      }
    } else if (init !== null) {
      this.#pairs = pairsOf(String(init).toWellFormed().replace(/^\?/, ""));
    }
  }
  static bound(query, changed) {
    const made = new URLSearchParams(query);
    made.#changed = changed;
    return made;
  }
  static reset(params, query) { params.#pairs = pairsOf(query.replace(/^\?/, "")); }
  get size() { return this.#pairs.length; }
  append(name, value) { this.#pairs.push([name, value].map((item) => String(item).toWellFormed())); this.#changed(); }
  delete(name, value) {
    const isKept = ([known, held]) => known !== String(name) || (value !== undefined && held !== String(value));
    this.#pairs = this.#pairs.filter(isKept);
    this.#changed();
  }
  get(name) { return this.#pairs.find(([known]) => known === String(name).toWellFormed())?.[1] ?? null; }
  getAll(name) { return this.#pairs.filter(([known]) => known === String(name).toWellFormed()).map(([, value]) => value); }
  has(name, value) {
    return this.#pairs.some(([known, held]) => known === String(name).toWellFormed() && (value === undefined || held === String(value)));
  }
  set(name, value) {
    const pair = [name, value].map((item) => String(item).toWellFormed());
    const at = this.#pairs.findIndex(([known]) => known === pair[0]);
    if (at < 0) this.#pairs.push(pair);
    else this.#pairs = this.#pairs.filter(([known], place) => known !== pair[0] || place === at).map((held) => (held[0] === pair[0] ? pair : held));
    this.#changed();
  }
  sort() {
    // By code units, as the comparison of strings does.
    this.#pairs = this.#pairs.map((pair, at) => [pair, at])
      .sort(([[a], one], [[b], other]) => (a < b ? -1 : a > b ? 1 : one - other)).map(([pair]) => pair);
    this.#changed();
  }
  forEach(each, self) { for (const [name, value] of this) each.call(self, value, name, this); }
  *entries() { for (let at = 0; at < this.#pairs.length; at += 1) yield [...this.#pairs[at]]; }
  *keys() { for (const [name] of this.entries()) yield name; }
  *values() { for (const [, value] of this.entries()) yield value; }
  [Symbol.iterator]() { return this.entries(); }
  toString() { return this.#pairs.map(([name, value]) => `${formEncoded(name)}=${formEncoded(value)}`).join("&"); }
  get [Symbol.toStringTag]() { return "URLSearchParams"; }
};
const { bound, reset } = URLSearchParams;
delete URLSearchParams.bound;
delete URLSearchParams.reset;

const PARTS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];
const readUrl = (url, base) => host.url(String(url).toWellFormed(), base === undefined ? "" : String(base).toWellFormed(), base !== undefined);
globalThis.URL = class URL {
  // The parts in their order.
  #parts; #params;
  constructor(url, base) {
    const read = readUrl(url, base);
    if (read === "") {
      const error = new TypeError("Invalid URL");
      Object.assign(error, { code: "ERR_INVALID_URL", input: String(url) }, base === undefined ? {} : { base: String(base) });
      throw error;
    }
    this.#parts = parse(read);
  }
  static canParse(url, base) { return readUrl(url, base) !== ""; }
  static parse(url, base) { return URL.canParse(url, base) ? new URL(url, base) : null; }
  static part(url, at) { return url.#parts[at]; }
  static setPart(url, at, value) {
    const read = host.urlSet(url.#parts[0], PARTS[at], String(value).toWellFormed());
    if (read === "") {
      if (at === 0) throw new TypeError("Invalid URL");
      return;
    }
    url.#parts = parse(read);
    if (url.#params && (at === 0 || PARTS[at] === "search")) reset(url.#params, url.#parts[9]);
  }
  get searchParams() {
    this.#params ??= bound(this.#parts[9], () => {
      const query = this.#params.toString();
      this.#parts = parse(host.urlSet(this.#parts[0], "search", query));
    });
    return this.#params;
  }
  toString() { return this.#parts[0]; }
  toJSON() { return this.#parts[0]; }
  get [Symbol.toStringTag]() { return "URL"; }
};
const { part: partOf, setPart } = URL;
delete URL.part;
delete URL.setPart;
PARTS.forEach((name, at) => Object.defineProperty(URL.prototype, name, {
  configurable: true, enumerable: true,
  get() { return partOf(this, at); },
  set: name === "origin" ? undefined : function set(value) { setPart(this, at, value); },
}));
