// Text and bytes.
globalThis.TextEncoder = class TextEncoder {
  get encoding() { return "utf-8"; }
  encode(text = "") { return host.encode(String(text)); }
  encodeInto(text, bytes) {
    if (!(bytes instanceof Uint8Array)) wrong("TextEncoder.encodeInto: the second argument is a Uint8Array");
    let [read, written] = [0, 0];
    for (const character of String(text)) {
      const point = character.codePointAt(0);
      const size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
      if (written + size > bytes.length) break;
      read += character.length;
      written += size;
    }
    bytes.set(host.encode(String(text).slice(0, read)));
    return { read, written };
  }
};
// A character has one byte in the encodings of Latin and other small scripts.
const STREAMED = /^(utf-|windows-|iso-8859|koi8|ibm866|macintosh|x-mac|x-user)/;
globalThis.TextDecoder = class TextDecoder {
  #encoding; #fatal; #keepsMark; #rest = new Uint8Array(); #isBegun = false;
  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    const encoding = host.encodingOf(String(label));
    if (encoding === "") throw new RangeError(`TextDecoder: ${stringify(String(label))} is no encoding that is known`);
    [this.#encoding, this.#fatal, this.#keepsMark] = [encoding, Boolean(fatal), Boolean(ignoreBOM)];
  }
  get encoding() { return this.#encoding; }
  get fatal() { return this.#fatal; }
  get ignoreBOM() { return this.#keepsMark; }
  decode(input = new Uint8Array(), { stream = false } = {}) {
    if (!(input instanceof ArrayBuffer) && !ArrayBuffer.isView(input)) wrong("TextDecoder.decode: pass bytes");
    if (stream && !STREAMED.test(this.#encoding)) wrong(`TextDecoder.decode: ${this.#encoding} in pieces is not here: decode the whole text`);
    let bytes = asBytes(input);
    if (this.#rest.length > 0) {
      const joined = new Uint8Array(this.#rest.length + bytes.length);
      joined.set(this.#rest);
      joined.set(bytes, this.#rest.length);
      bytes = joined;
    }
    // How many bytes at the end begin a character that is not whole yet.
    const open = stream ? host.openBytes(this.#encoding, bytes) : 0;
    this.#rest = bytes.slice(bytes.length - open);
    bytes = bytes.subarray(0, bytes.length - open);
    const text = host.decodeAs(this.#encoding, bytes, this.#fatal, this.#keepsMark || this.#isBegun);
    this.#isBegun = stream && (this.#isBegun || bytes.length > 0);
    if (text === undefined) {
      [this.#rest, this.#isBegun] = [new Uint8Array(), false];
      throw new TypeError(`The encoded data was not valid for encoding ${this.#encoding}`);
    }
    return text;
  }
};
const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
globalThis.btoa = (binary) => {
  const text = String(binary);
  let out = "";
  for (let at = 0; at < text.length; at += 3) {
    const codes = [0, 1, 2].map((step) => (at + step < text.length ? text.charCodeAt(at + step) : 0));
    if (codes.some((code) => code > 255)) throw new DOMException("btoa: a character is not in Latin-1", "InvalidCharacterError");
    const bits = (codes[0] << 16) | (codes[1] << 8) | codes[2];
    const left = text.length - at;
    out += BASE64[bits >> 18] + BASE64[(bits >> 12) & 63] + (left > 1 ? BASE64[(bits >> 6) & 63] : "=") + (left > 2 ? BASE64[bits & 63] : "=");
  }
  return out;
};
globalThis.atob = (encoded) => {
  let text = String(encoded).replace(/[\t\n\f\r ]/g, "");
  if (text.length % 4 === 0) text = text.replace(/==?$/, "");
  if (text.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(text)) throw new DOMException("atob: the text is not base64", "InvalidCharacterError");
  let [out, bits, held] = ["", 0, 0];
  for (const character of text) {
    bits = ((bits << 6) | BASE64.indexOf(character)) & 0xffffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += String.fromCharCode((bits >> held) & 255);
    }
  }
  return out;
};
