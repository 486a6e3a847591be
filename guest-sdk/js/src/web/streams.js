// ReadableStream, to read: of a body, of an iterable, or of an author's own source.
class StreamReader {
  #stream;
  constructor(stream) {
    if (!(stream instanceof ReadableStream)) wrong("ReadableStreamDefaultReader: pass a ReadableStream");
    if (stream.locked) wrong("the stream is locked: another reader has it");
    this.#stream = stream;
    lockStream(stream, this);
  }
  get closed() { return closedOf(this.#own()); }
  #own() { return this.#stream ?? wrong("the reader has released its stream"); }
  async read() { return readFrom(this.#own()); }
  async cancel(reason) { return cancelStream(this.#own(), reason); }
  releaseLock() {
    if (this.#stream) {
      lockStream(this.#stream, null);
      leaveStream(this.#stream);
    }
    this.#stream = undefined;
  }
}
globalThis.ReadableStreamDefaultReader = StreamReader;
globalThis.ReadableStream = class ReadableStream {
  #queue = []; #reader = null; #isClosed = false; #error; #waiting = []; #source; #isPulling = false; #pullsAgain = false; #controller; #ended; #end;
  constructor(source = {}) {
    if (source?.type === "bytes") wrong("ReadableStream: a source of the type `bytes` is not here: enqueue Uint8Arrays");
    this.#source = source ?? {};
    this.#ended = new Promise((resolve, reject) => { this.#end = { resolve, reject }; });
    this.#ended.catch(() => {});
    const size = () => (this.#error !== undefined ? null : this.#isClosed ? 0 : 1 - this.#queue.length);
    const open = () => { if (this.#isClosed || this.#error !== undefined) wrong("the stream is closed"); };
    this.#controller = {
      get desiredSize() { return size(); },
      enqueue: (chunk) => {
        open();
        this.#queue.push(chunk);
        this.#serve();
      },
      close: () => {
        open();
        this.#isClosed = true;
        this.#serve();
      },
      error: (reason) => this.#fail(reason),
    };
    const started = this.#source.start?.(this.#controller);
    if (typeof started?.then !== "function") return;
    this.#isPulling = true;
    Promise.resolve(started).then(() => {
      this.#isPulling = false;
      this.#serve();
    }, (error) => this.#fail(error));
  }
  static from(iterable) {
    const items = (iterable[Symbol.asyncIterator] ?? iterable[Symbol.iterator]).call(iterable);
    return new ReadableStream({
      async pull(controller) {
        const { done, value } = await items.next();
        if (done) controller.close();
        else controller.enqueue(await value);
      },
      async cancel(reason) { await items.return?.(reason); },
    });
  }
  get locked() { return this.#reader !== null; }
  getReader(options) {
    if (options?.mode === "byob") wrong("getReader: the mode `byob` is not here");
    return new StreamReader(this);
  }
  async cancel(reason) {
    if (this.locked) wrong("the stream is locked: cancel it by its reader");
    return this.#cancel(reason);
  }
  tee() {
    const reader = this.getReader(), waiting = [[], []];
    const branch = (own) => new ReadableStream({
      async pull(controller) {
        if (waiting[own].length === 0) {
          const next = await reader.read();
          for (const queue of waiting) queue.push(next);
        }
        const { done, value } = waiting[own].shift();
        if (done) controller.close();
        else controller.enqueue(value);
      },
    });
    return [branch(0), branch(1)];
  }
  async *values({ preventCancel = false } = {}) {
    const reader = this.getReader();
    let isDone = false;
    try {
      while (true) {
        const { done, value } = await reader.read();
        isDone = done;
        if (done) return;
        yield value;
      }
    } finally {
      if (!isDone && !preventCancel) await reader.cancel();
      reader.releaseLock();
    }
  }
  [Symbol.asyncIterator](options) { return this.values(options); }
  get [Symbol.toStringTag]() { return "ReadableStream"; }
  static parts = {
    lock: (stream, reader) => { stream.#reader = reader; },
    read: (stream) => stream.#read(),
    cancel: (stream, reason) => stream.#cancel(reason),
    closed: (stream) => stream.#ended,
    leave: (stream) => {
      for (const { reject } of stream.#waiting.splice(0)) reject(new TypeError("the reader has released its stream"));
    },
  };
  #read() {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#serve();
    });
  }
  #serve() {
    while (this.#waiting.length > 0 && this.#queue.length > 0) this.#waiting.shift().resolve({ value: this.#queue.shift(), done: false });
    if (this.#error !== undefined) {
      for (const { reject } of this.#waiting.splice(0)) reject(this.#error.reason);
    } else if (this.#isClosed && this.#queue.length === 0) {
      this.#end.resolve();
      for (const { resolve } of this.#waiting.splice(0)) resolve({ value: undefined, done: true });
    } else if (this.#waiting.length > 0 && typeof this.#source.pull === "function") {
      // A source may enqueue later than its `pull` returns: only a read or a piece pulls again.
      this.#pullsAgain = this.#isPulling;
      if (this.#isPulling) return;
      this.#isPulling = true;
      const pulled = async () => {
        try {
          await this.#source.pull(this.#controller);
        } catch (error) {
          this.#fail(error);
        }
        this.#isPulling = false;
        if (this.#pullsAgain) this.#serve();
      };
      pulled();
    }
  }
  #fail(reason) {
    if (this.#isClosed || this.#error !== undefined) return;
    this.#error = { reason };
    this.#queue = [];
    this.#end.reject(reason);
    this.#serve();
  }
  async #cancel(reason) {
    if (this.#error !== undefined) throw this.#error.reason;
    if (this.#isClosed && this.#queue.length === 0) return;
    [this.#queue, this.#isClosed] = [[], true];
    this.#serve();
    await this.#source.cancel?.(reason);
  }
};
const { lock: lockStream, read: readFrom, cancel: cancelStream, closed: closedOf, leave: leaveStream } = ReadableStream.parts;
delete ReadableStream.parts;
