// Bodies: Blob, File, FormData, Headers, Request, Response.
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const BLANKS = "\t\n\r ";
const headerName = (name) => {
  const text = String(name);
  if (!TOKEN.test(text)) wrong(`Headers: ${stringify(text)} is not the name of a header`);
  return text.toLowerCase();
};
const headerValue = (value) => {
  const text = String(value);
  let [from, to] = [0, text.length];
  while (from < to && BLANKS.includes(text[from])) from += 1;
  while (to > from && BLANKS.includes(text[to - 1])) to -= 1;
  const inner = text.slice(from, to);
  if (/[\0\r\n]|[^\0-\xff]/.test(inner)) wrong("Headers: a value has a line end in it, or a character that is not in Latin-1");
  return inner;
};
globalThis.Headers = class Headers {
  #pairs = [];
  constructor(init) {
    if (init === undefined || init === null) return;
    if (typeof init !== "object") wrong("Headers: pass an object, a list of pairs or Headers");
    const pairs = init instanceof Headers ? init.#pairs : typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
    for (const pair of pairs) {
      const [name, value] = pair;
      if (pair.length !== 2) wrong("Headers: each item of the list is a pair of a name and a value");
      this.append(name, value);
    }
  }
  append(name, value) { this.#pairs.push([headerName(name), headerValue(value)]); }
  set(name, value) {
    const [known, text] = [headerName(name), headerValue(value)];
    this.delete(known);
    this.#pairs.push([known, text]);
  }
  delete(name) { const known = headerName(name); this.#pairs = this.#pairs.filter(([held]) => held !== known); }
  has(name) { return this.get(name) !== null; }
  get(name) {
    const known = headerName(name);
    const found = this.#pairs.filter(([held]) => held === known).map(([, value]) => value);
    return found.length === 0 ? null : found.join(", ");
  }
  getSetCookie() { return this.#pairs.filter(([name]) => name === "set-cookie").map(([, value]) => value); }
  *entries() {
    // Sorted, and of one name one entry, but for `set-cookie`.
    for (const name of [...new Set(this.#pairs.map(([name]) => name))].sort()) {
      if (name === "set-cookie") yield* this.getSetCookie().map((value) => [name, value]);
      else yield [name, this.get(name)];
    }
  }
  *keys() { for (const [name] of this.entries()) yield name; }
  *values() { for (const [, value] of this.entries()) yield value; }
  forEach(each, self) { for (const [name, value] of this) each.call(self, value, name, this); }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return "Headers"; }
};

const joinedBytes = (pieces) => {
  const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
};
const blobBytes = Symbol("bytes");
globalThis.Blob = class Blob {
  #type;
  constructor(pieces = [], { type = "" } = {}) {
    if (typeof pieces !== "object" || typeof pieces[Symbol.iterator] !== "function") wrong("Blob: the first argument is a list");
    const bytes = joinedBytes([...pieces].map((piece) => (piece instanceof Blob ? piece[blobBytes] : asBytes(piece))));
    Object.defineProperty(this, blobBytes, { value: bytes });
    this.#type = /[^\x20-\x7e]/.test(String(type)) ? "" : String(type).toLowerCase();
  }
  get size() { return this[blobBytes].length; }
  get type() { return this.#type; }
  slice(start, end, type = "") { return new Blob([this[blobBytes].slice(start, end)], { type }); }
  async arrayBuffer() { return this[blobBytes].slice().buffer; }
  async bytes() { return this[blobBytes].slice(); }
  async text() { return host.decodeAs("utf-8", this[blobBytes], false, false); }
  stream() { return ReadableStream.from([this[blobBytes].slice()]); }
  get [Symbol.toStringTag]() { return "Blob"; }
};
globalThis.File = class File extends Blob {
  #name; #lastModified;
  constructor(pieces, name, options = {}) {
    super(pieces, options);
    [this.#name, this.#lastModified] = [String(name), options?.lastModified ?? Date.now()];
  }
  get name() { return this.#name; }
  get lastModified() { return this.#lastModified; }
  get [Symbol.toStringTag]() { return "File"; }
};
globalThis.FormData = class FormData {
  #entries = [];
  constructor(form) { if (form !== undefined) wrong("FormData: there is no form to read"); }
  static #made(value, name) {
    if (!(value instanceof Blob)) return String(value).toWellFormed();
    if (value instanceof File && name === undefined) return value;
    return new File([value], name ?? "blob", { type: value.type });
  }
  append(name, value, file) { this.#entries.push([String(name).toWellFormed(), FormData.#made(value, file)]); }
  set(name, value, file) {
    const entry = [String(name).toWellFormed(), FormData.#made(value, file)];
    const at = this.#entries.findIndex(([known]) => known === entry[0]);
    if (at < 0) this.#entries.push(entry);
    else this.#entries = this.#entries.filter(([known], place) => known !== entry[0] || place === at).map((held) => (held[0] === entry[0] ? entry : held));
  }
  delete(name) { this.#entries = this.#entries.filter(([known]) => known !== String(name)); }
  get(name) { return this.#entries.find(([known]) => known === String(name))?.[1] ?? null; }
  getAll(name) { return this.#entries.filter(([known]) => known === String(name)).map(([, value]) => value); }
  has(name) { return this.#entries.some(([known]) => known === String(name)); }
  forEach(each, self) { for (const [name, value] of this) each.call(self, value, name, this); }
  *entries() { yield* this.#entries.map((entry) => [...entry]); }
  *keys() { for (const [name] of this.#entries) yield name; }
  *values() { for (const [, value] of this.#entries) yield value; }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return "FormData"; }
};
const multipart = (form) => {
  const boundary = `----toolcell${crypto.randomUUID().replace(/-/g, "")}`;
  const escape = (text) => text.replace(/\r\n|\r|\n/g, "%0D%0A").replace(/"/g, "%22");
  const pieces = [];
  for (const [name, value] of form) {
    const file = value instanceof File ? `; filename="${escape(value.name)}"\r\nContent-Type: ${value.type || "application/octet-stream"}` : "";
    pieces.push(host.encode(`--${boundary}\r\nContent-Disposition: form-data; name="${escape(name)}"${file}\r\n\r\n`));
    pieces.push(value instanceof File ? value[blobBytes] : host.encode(value.replace(/\r\n|\r|\n/g, "\r\n")), host.encode("\r\n"));
  }
  return { bytes: joinedBytes([...pieces, host.encode(`--${boundary}--\r\n`)]), type: `multipart/form-data; boundary=${boundary}` };
};
/** The bytes of a body or its stream, and the media type that goes with them. */
const bodyOf = (body) => {
  if (body === undefined || body === null) return { bytes: undefined };
  if (body instanceof URLSearchParams) return { bytes: host.encode(body.toString()), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  if (body instanceof Blob) return { bytes: body[blobBytes].slice(), type: body.type || undefined };
  if (body instanceof FormData) return multipart(body);
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return { bytes: asBytes(body).slice() };
  if (body instanceof ReadableStream) {
    if (body.locked) wrong("the stream of the body is locked");
    return { stream: body };
  }
  return { bytes: host.encode(String(body)), type: "text/plain;charset=UTF-8" };
};
class Body {
  #bytes; #stream; #isUsed = false;
  constructor(bytes, stream) { [this.#bytes, this.#stream] = [bytes, stream]; }
  get bodyUsed() { return this.#isUsed; }
  /** The stream, or the bytes as a stream of one piece. */
  get body() {
    if (this.#bytes === undefined) return this.#stream ?? null;
    this.#stream ??= new ReadableStream({
      pull: (controller) => {
        const bytes = this.#read(true);
        if (bytes.length > 0) controller.enqueue(bytes);
        controller.close();
      },
      cancel: () => { this.#isUsed = true; },
    });
    return this.#stream;
  }
  /** The bytes, once: a second read is an error, as the standard says. */
  #read(isPulled = false) {
    if (this.#isUsed) wrong("Body is unusable: Body has already been read");
    if (this.#stream?.locked && !isPulled) wrong("Body is unusable: the stream of the body is locked");
    if (this.#bytes !== undefined) this.#isUsed = true;
    return this.#bytes ?? new Uint8Array();
  }
  /** The bytes, also those of a stream, once. */
  async #all() {
    if (!isStream(this)) return this.#read();
    if (this.#isUsed || this.#stream.locked) wrong("Body is unusable: the stream of the body was read or is locked");
    this.#isUsed = true;
    const pieces = [], reader = this.#stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return joinedBytes(pieces);
      if (!(value instanceof Uint8Array)) wrong("the stream of a body has pieces that are no Uint8Array");
      pieces.push(value);
    }
  }
  async bytes() { return this.#all(); }
  async arrayBuffer() { return (await this.#all()).slice().buffer; }
  async blob() { return new Blob([await this.#all()], { type: this.headers.get("content-type") ?? "" }); }
  async text() { return host.decodeAs("utf-8", await this.#all(), false, false); }
  async json() { return parse(await this.text()); }
  async formData() {
    const type = this.headers.get("content-type") ?? "";
    if (!/^application\/x-www-form-urlencoded/i.test(type)) wrong(`formData(): the type ${stringify(type)} cannot be read here: use text()`);
    const form = new FormData();
    for (const [name, value] of new URLSearchParams(await this.text())) form.append(name, value);
    return form;
  }
  static isStream(from) { return from.#bytes === undefined && from.#stream !== undefined; }
  static copyOf(from) {
    if (from.#isUsed) wrong("Body has already been used: it cannot be copied");
    if (isStream(from)) wrong("a body that is a stream cannot be copied: read it first");
    return from.#bytes;
  }
}
const { copyOf, isStream } = Body;
for (const name of ["copyOf", "isStream"]) delete Body[name];
const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
globalThis.Request = class Request extends Body {
  #fields;
  constructor(input, init = {}) {
    const from = input instanceof Request ? input : undefined;
    const { bytes, stream, type } = init.body === undefined && from ? { bytes: copyOf(from) } : bodyOf(init.body);
    super(bytes, stream);
    const url = from ? from.url : new URL(String(input));
    if (!from && (url.username !== "" || url.password !== "")) wrong("Request: the URL has a user in it: use a secret or a header");
    const given = String(init.method ?? from?.method ?? "GET"), upper = given.toUpperCase();
    const method = METHODS.includes(upper) ? upper : given;
    if ((bytes ?? stream) !== undefined && (method === "GET" || method === "HEAD")) wrong(`Request: a ${method} has no body`);
    const headers = new Headers(init.headers ?? from?.headers);
    if (type !== undefined && !headers.has("content-type")) headers.set("content-type", type);
    const signal = init.signal ?? from?.signal ?? new AbortController().signal;
    const redirect = init.redirect ?? from?.redirect ?? "follow";
    if (!["follow", "error", "manual"].includes(redirect)) wrong(`Request: there is no \`redirect\` ${redirect}`);
    this.#fields = { method, url: String(url), headers, signal, secret: init.secret ?? from?.secret, timeoutMs: init.timeoutMs ?? from?.timeoutMs, redirect };
  }
  get method() { return this.#fields.method; }
  get url() { return this.#fields.url; }
  get headers() { return this.#fields.headers; }
  get signal() { return this.#fields.signal; }
  get secret() { return this.#fields.secret; }
  get timeoutMs() { return this.#fields.timeoutMs; }
  get redirect() { return this.#fields.redirect; }
  clone() { return new Request(this, { body: copyOf(this) }); }
  get [Symbol.toStringTag]() { return "Request"; }
};
const NO_BODY = [101, 103, 204, 205, 304];
globalThis.Response = class Response extends Body {
  #fields;
  constructor(body, { status = 200, statusText = "", headers, url = "" } = {}) {
    const { bytes, stream, type } = bodyOf(body);
    super(bytes, stream);
    if (!Number.isInteger(status) || status < 200 || status > 599) throw new RangeError("Response: the status is a number from 200 to 599");
    if ((bytes ?? stream) !== undefined && NO_BODY.includes(status)) wrong(`Response: status ${status} has no body`);
    const own = new Headers(headers);
    if (type !== undefined && !own.has("content-type")) own.set("content-type", type);
    this.#fields = { status, statusText: String(statusText), headers: own, url, type: "default" };
  }
  static fetched(body, { status, headers, url }) {
    const made = new Response(NO_BODY.includes(status) ? null : body, { status: status >= 200 && status <= 599 ? status : 200, url });
    made.#fields.status = status;
    for (const [name, value] of headers) made.headers.append(name, value);
    return made;
  }
  static json(value, init = {}) {
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(written("value", value), { ...init, headers });
  }
  static error() { const made = new Response(null); made.#fields = { ...made.#fields, status: 0, type: "error" }; return made; }
  static redirect(url, status = 302) {
    if (!REDIRECTS.includes(status)) throw new RangeError(`Response.redirect: ${status} is no redirect`);
    return new Response(null, { status, headers: { location: new URL(String(url)).href } });
  }
  get status() { return this.#fields.status; }
  get statusText() { return this.#fields.statusText; }
  get headers() { return this.#fields.headers; }
  get url() { return this.#fields.url; }
  get type() { return this.#fields.type; }
  get ok() { return this.status >= 200 && this.status < 300; }
  get redirected() { return false; }
  clone() { return new Response(copyOf(this), { status: this.status, statusText: this.statusText, headers: this.headers, url: this.url }); }
  get [Symbol.toStringTag]() { return "Response"; }
};
const { fetched } = Response;
delete Response.fetched;
