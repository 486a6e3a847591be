// Timers on the call's clock. A call that has its answer does not wait for those that are left.
const MAX_DELAY = 2147483647;
let timerCount = 0;
const timers = new Map();
// Their numbers with the times at which they are due, the next one last. One that was cleared stays until its turn.
const due = [];
const plan = (number, at) => {
  let [low, high] = [0, due.length];
  // Behind those of the same time.
  while (low < high) {
    const middle = (low + high) >> 1;
    if (due[middle].at > at) low = middle + 1;
    else high = middle;
  }
  due.splice(low, 0, { number, at });
};
const timer = (name, isRepeated) => (callback, delay = 0, ...values) => {
  inCell(`${name}()`);
  if (typeof callback !== "function") wrong(`${name}(): pass a function, not text`);
  let wait = Math.trunc(Number(delay)) || 0;
  if (wait < 1 || wait > MAX_DELAY) wait = 1;
  timerCount += 1;
  timers.set(timerCount, { wait, isRepeated, callback, values });
  plan(timerCount, host.now() + wait);
  return timerCount;
};
globalThis.setTimeout = timer("setTimeout", false);
globalThis.setInterval = timer("setInterval", true);
globalThis.clearTimeout = globalThis.clearInterval = (number) => { timers.delete(Number(number)); };
globalThis.setImmediate = (callback, ...values) => setTimeout(callback, 0, ...values);
globalThis.clearImmediate = clearTimeout;
/** When the next one is due. */
const nextTimer = () => {
  while (due.length > 0 && !timers.has(due.at(-1).number)) due.pop();
  return due.at(-1)?.at;
};
/** Runs the next timer. */
const runTimer = () => {
  const { number } = due.pop();
  const { wait, isRepeated, callback, values } = timers.get(number);
  if (isRepeated) plan(number, host.now() + wait);
  else timers.delete(number);
  try {
    callback(...values);
  } catch (error) {
    Promise.reject(error);
  }
};

globalThis.performance = {
  /** Milliseconds since the first use of this or of a timer in the call. */
  now: () => (host.isInCell() ? host.now() : 0),
  get timeOrigin() { return Date.now() - this.now(); },
  toJSON() { return { timeOrigin: this.timeOrigin }; },
};
globalThis.self = globalThis;
