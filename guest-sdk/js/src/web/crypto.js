// Randomness, digests and HMAC. The memory of every call starts equal, so random numbers come from the host.
// While modules are loaded there are none: a package gets numbers that are equal in each call, and the build warns of it.
const warnings = new Set();
let lastNumber = 1;
/** The line that called, outside of this module. */
const calledAt = () => String(new Error().stack).split("\n").map((line) => /\((.*:\d+):\d+\)|at (\S+:\d+):\d+$/.exec(line)).map((found) => found?.[1] ?? found?.[2] ?? "")
  .find((place) => place !== "" && !place.startsWith("toolcell"));
const drawnByPackage = () => {
  const place = calledAt();
  if (!place?.includes("node_modules/")) inCell("Math.random()");
  warnings.add(`${place}: Math.random() is used while the package is loaded: each call has the same number`);
  lastNumber = (lastNumber * 48271) % 2147483647;
  return lastNumber / 2147483647;
};
const plainNow = Date.now;
const nowWhileLoading = () => {
  // A package may keep this function for its calls.
  const place = host.isInCell() ? undefined : calledAt();
  if (place?.includes("node_modules/")) warnings.add(`${place}: Date.now() is used while the package is loaded: it is 1970 there, in each call`);
  return plainNow();
};
Date.now = nowWhileLoading;
Math.random = () => {
  if (!host.isInCell()) return drawnByPackage();
  const [a, b] = new Uint32Array(host.random(8).buffer);
  return ((a >>> 5) * 67108864 + (b >>> 6)) / 9007199254740992;
};
const MAX_RANDOM = 65536;
const HASHES = { "SHA-1": 64, "SHA-256": 64, "SHA-384": 128, "SHA-512": 128 };
const hashName = (given) => {
  const name = String(typeof given === "object" && given !== null ? given.name : given).toUpperCase();
  if (!Object.hasOwn(HASHES, name)) throw new DOMException(`the digest ${name} is not here: use ${Object.keys(HASHES).join(", ")}`, "NotSupportedError");
  return name;
};
const hmacOnly = (given, what) => {
  const name = String(given?.name ?? given).toUpperCase();
  if (name !== "HMAC") throw new DOMException(`crypto.subtle.${what}: ${name} is not here: only HMAC is`, "NotSupportedError");
};
const data = (value, what) => {
  if (!(value instanceof ArrayBuffer) && !ArrayBuffer.isView(value)) wrong(`crypto.subtle.${what}: pass bytes`);
  return asBytes(value);
};
let isKeyMade = false;
globalThis.CryptoKey = class CryptoKey {
  #bytes;
  constructor(bytes, fields) {
    if (!isKeyMade) wrong("CryptoKey: use crypto.subtle.importKey or generateKey");
    this.#bytes = bytes;
    Object.assign(this, fields);
  }
  static bytesOf(key) { return key.#bytes; }
};
const { bytesOf } = CryptoKey;
delete CryptoKey.bytesOf;
const keyOf = (bytes, hash, extractable, usages) => {
  isKeyMade = true;
  try {
    return new CryptoKey(bytes, { type: "secret", extractable: Boolean(extractable), algorithm: { name: "HMAC", hash: { name: hash }, length: bytes.length * 8 }, usages: [...usages] });
  } finally {
    isKeyMade = false;
  }
};
/** Checks the size and the usages of a new key, as the standard does: anyone could sign with an empty key. */
const checkKey = (size, usages, fault) => {
  const names = [...usages];
  if (names.length === 0 || names.some((usage) => usage !== "sign" && usage !== "verify")) throw new DOMException("the usages of a key are `sign` and `verify`", "SyntaxError");
  if (!(size > 0)) throw new DOMException("a key has at least one byte", fault);
};
const mayUse = (key, usage) => {
  if (!(key instanceof CryptoKey)) wrong(`crypto.subtle.${usage}: the key is a CryptoKey`);
  if (!key.usages.includes(usage)) throw new DOMException(`the key may not ${usage}`, "InvalidAccessError");
};
const exact = (bytes) => bytes.slice().buffer;
const subtle = {
  async digest(algorithm, bytes) { return exact(host.digest(hashName(algorithm), data(bytes, "digest"))); },
  async importKey(format, bytes, algorithm, extractable, usages) {
    hmacOnly(algorithm, "importKey");
    if (format !== "raw") throw new DOMException(`crypto.subtle.importKey: the format ${format} is not here: use "raw"`, "NotSupportedError");
    const key = data(bytes, "importKey").slice();
    checkKey(key.length, usages, "DataError");
    return keyOf(key, hashName(algorithm.hash), extractable, usages);
  },
  async generateKey(algorithm, extractable, usages) {
    inCell("crypto.subtle.generateKey()");
    hmacOnly(algorithm, "generateKey");
    const hash = hashName(algorithm.hash);
    const size = algorithm.length === undefined ? HASHES[hash] : algorithm.length / 8;
    checkKey(size, usages, "OperationError");
    return keyOf(host.random(size), hash, extractable, usages);
  },
  async exportKey(format, key) {
    if (format !== "raw") throw new DOMException(`crypto.subtle.exportKey: the format ${format} is not here: use "raw"`, "NotSupportedError");
    if (!key.extractable) throw new DOMException("the key is not extractable", "InvalidAccessError");
    return exact(bytesOf(key));
  },
  async sign(algorithm, key, bytes) {
    hmacOnly(algorithm, "sign");
    mayUse(key, "sign");
    return exact(host.hmac(key.algorithm.hash.name, bytesOf(key), data(bytes, "sign")));
  },
  async verify(algorithm, key, signature, bytes) {
    hmacOnly(algorithm, "verify");
    mayUse(key, "verify");
    const [own, theirs] = [host.hmac(key.algorithm.hash.name, bytesOf(key), data(bytes, "verify")), data(signature, "verify")];
    // Looks at every byte, whatever the first ones are.
    let difference = own.length ^ theirs.length;
    for (let at = 0; at < own.length; at += 1) difference |= own[at] ^ (theirs[at] ?? 0);
    return difference === 0;
  },
};
for (const name of ["encrypt", "decrypt", "deriveBits", "deriveKey", "wrapKey", "unwrapKey"]) {
  subtle[name] = async () => { throw new DOMException(`crypto.subtle.${name} is not here`, "NotSupportedError"); };
}
globalThis.crypto = {
  subtle,
  getRandomValues(array) {
    inCell("crypto.getRandomValues()");
    if (!ArrayBuffer.isView(array) || /Float|DataView/.test(tag.call(array))) throw new DOMException("crypto.getRandomValues: pass an array of integers", "TypeMismatchError");
    if (array.byteLength > MAX_RANDOM) throw new DOMException(`crypto.getRandomValues: ${array.byteLength} bytes are more than ${MAX_RANDOM}`, "QuotaExceededError");
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(host.random(array.byteLength));
    return array;
  },
  randomUUID() {
    inCell("crypto.randomUUID()");
    const bytes = host.random(16);
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  },
};
