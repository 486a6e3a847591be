// fetch: requests are on their way together, and each ends when its response is there or its signal aborts it. One that the
// handler did not wait for is given up when the call has its result.
const flights = new Map();
/** Settles the promise of a request whose response is there. */
const land = (number) => {
  const flight = flights.get(number);
  flights.delete(number);
  flight.done();
  try {
    const { head, body } = host.finish(number);
    const { status, headers } = of(head);
    if (flight.redirect === "error" && REDIRECTS.includes(status)) wrong(`fetch(): ${flight.url} redirects (status ${status})`);
    flight.resolve(fetched(decoded(body, headers), { status, headers, url: flight.url }));
  } catch (error) {
    flight.reject(error);
  }
};
const REDIRECTS = [301, 302, 303, 307, 308];
const CODINGS = ["gzip", "x-gzip", "deflate", "br"];
/** A body without its content codings. The headers stay as they came. */
const decoded = (bytes, headers) => {
  const named = headers.filter(([name]) => name === "content-encoding").flatMap(([, value]) => value.split(","));
  const codings = named.map((name) => name.trim().toLowerCase()).filter((name) => name !== "" && name !== "identity");
  let body = bytes;
  for (const coding of codings.reverse()) {
    if (!CODINGS.includes(coding)) throw new HostError("broken", `the body has the content coding ${coding}, which is not known here: ask for another with \`accept-encoding\``);
    if (body.length > 0) body = host.inflate(coding.replace("x-", ""), body);
    if (typeof body === "string") throw new HostError("broken", `the body cannot be decoded (${coding}): ${body}`);
  }
  return body;
};
/** Sends a request under the tool's grants. `secret` is a handle of `secrets.get`; redirects are not followed. */
export const fetch = async (input, init = {}) => {
  granted("http", "fetch()");
  const request = new Request(input, init ?? {});
  const { signal, url, secret } = request;
  signal.throwIfAborted();
  const bytes = isStream(request) ? await request.bytes() : copyOf(request);
  signal.throwIfAborted();
  const sent = { method: request.method, url, headers: [...request.headers], timeoutMs: request.timeoutMs, secret: secret?.name };
  const started = host.start(stringify(sent), bytes);
  if (typeof started === "string") of(started);
  return new Promise((resolve, reject) => {
    const abort = () => {
      if (flights.delete(started)) host.cancel(started);
      reject(signal.reason);
    };
    signal.addEventListener("abort", abort, { once: true });
    flights.set(started, { resolve, reject, url: url.replace(/#.*/, ""), redirect: request.redirect, done: () => signal.removeEventListener("abort", abort) });
  });
};
globalThis.fetch = fetch;

let isEnding = false;
/** Runs what is due: a timer, or what a response brings. Waits for the next one, and tells whether there was one. */
const step = () => {
  if (isEnding) {
    for (const number of flights.keys()) host.cancel(number);
    flights.clear();
    return false;
  }
  const next = nextTimer();
  if (flights.size === 0 && next === undefined) return false;
  const wait = next === undefined ? -1 : Math.max(0, next - host.now());
  const landed = flights.size === 0 && wait === 0 ? [] : host.wait(wait);
  for (const number of landed) land(number);
  // Without a response the time has come, also where the clock stands still.
  if (next !== undefined && (landed.length === 0 || next <= host.now()) && nextTimer() !== undefined) runTimer();
  return true;
};
