// For the tests: time that is played.

/** Lets all that is ready run. Not played itself. */
const { setImmediate } = globalThis;
export const settled = async () => {
  for (let round = 0; round < 3; round += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Stands in for timers and clock until the end of test `t`. */
export class Clock {
  now = 1_000_000;
  #timers = new Map();
  #count = 0;

  constructor(t) {
    const set =
      (every) =>
      (run, ms, ...args) => {
        this.#count += 1;
        this.#timers.set(this.#count, { run: () => run(...args), at: this.now + ms, every: every ? ms : 0 });
        return this.#count;
      };
    const clear = (timer) => void this.#timers.delete(timer);
    t.mock.method(globalThis, "setTimeout", set(false));
    t.mock.method(globalThis, "setInterval", set(true));
    t.mock.method(globalThis, "clearTimeout", clear);
    t.mock.method(globalThis, "clearInterval", clear);
    t.mock.method(Date, "now", () => Math.floor(this.now));
  }

  /** How many timers are set. */
  get timers() {
    return this.#timers.size;
  }

  /** Plays the next `ms`, with all that comes of each timer before the next one rings. */
  async pass(ms) {
    const end = this.now + ms;
    await settled();
    for (let next; (next = this.#next(end)); await settled()) this.#ring(...next);
    this.now = end;
  }

  /** Plays until `promise` is settled. */
  async until(promise) {
    let isDone = false;
    const done = () => (isDone = true);
    promise.then(done, done);
    await settled();
    for (let next; !isDone && (next = this.#next(Infinity)); await settled()) this.#ring(...next);
    if (!isDone) throw new Error("nothing is to come, and the promise isn't settled");
    return promise;
  }

  #next(end) {
    const due = [...this.#timers].filter(([, { at }]) => at <= end);
    return due.sort(([, a], [, b]) => a.at - b.at)[0];
  }

  #ring(id, timer) {
    this.now = Math.max(this.now, timer.at);
    if (timer.every) timer.at += timer.every;
    else this.#timers.delete(id);
    timer.run();
  }
}

/** Keeps what is said to the console out of the test's output; its lines. */
export function quiet(t) {
  const said = [];
  t.mock.method(console, "error", (...line) => void said.push(line.join(" ")));
  return said;
}
