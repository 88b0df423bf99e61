// What Rust has promised, while its wasm lives and where it fails.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { AGAIN } from "./agreed.js";
import { Clock, quiet, settled } from "./played.mjs";
import { LOOK_MS, keepInObject, keepInWorker, later } from "./promises.js";
import { Waiters } from "./waiters.js";

let instance;
beforeEach(() => {
  instance = globalThis.__worker_init_state = { criticalError: false, instanceId: 7 };
});

const never = () => new Promise(() => {});
/** Both keep; `broken`: the status where they can't. */
const KEEPERS = [
  { name: "in the Worker", keep: (promise) => keepInWorker(promise, { waitUntil() {} }), broken: 503 },
  { name: "in an object", keep: keepInObject, broken: AGAIN },
];

for (const { name, keep, broken } of KEEPERS) {
  test(`${name} what Rust promised is the answer, and no timer is left`, async (t) => {
    const clock = new Clock(t);
    const response = new Response();
    const inTime = new Promise((resolve) => setTimeout(resolve, 5_000, [response]));
    assert.equal(await clock.until(keep(inTime)), response);
    assert.equal(clock.timers, 0);
  });

  test(`${name} an answer that is a promise itself is waited for though the wasm fails: it is none of Rust's`, async (t) => {
    const clock = new Clock(t);
    const response = new Response();
    const kept = keep(Promise.resolve([new Promise((resolve) => setTimeout(resolve, 5_000, response))]));
    await clock.pass(1);
    instance.instanceId += 1;
    assert.equal(await clock.until(kept), response);
  });

  test(`${name} a rejection is passed on, and no timer is left`, async (t) => {
    const clock = new Clock(t);
    await assert.rejects(clock.until(keep(Promise.reject(new Error("of Rust")))), /of Rust/);
    assert.equal(clock.timers, 0);
  });

  test(`${name} a wasm that fails meanwhile, or was made anew, is noticed at the next look`, async (t) => {
    const clock = new Clock(t);
    quiet(t);
    for (const failing of [() => (instance.criticalError = true), () => (instance.instanceId += 1)]) {
      const kept = keep(never());
      await clock.pass(3 * LOOK_MS + 1);
      failing();
      const failed = clock.now;
      assert.equal((await clock.until(kept)).status, broken);
      assert.ok(clock.now - failed <= LOOK_MS);
      assert.equal(clock.timers, 0);
      instance.criticalError = false;
    }
  });
}

test("in the Worker the promise goes on though the caller leaves, and its failure isn't the runtime's", async (t) => {
  new Clock(t);
  const held = [];
  const context = { waitUntil: (promise) => held.push(promise) };
  keepInWorker(Promise.reject(new Error("of Rust")), context).catch(() => {});
  assert.equal(await held[0], undefined);
});

test("an answer is held back for its time", async (t) => {
  const clock = new Clock(t);
  const response = new Response();
  const began = clock.now;
  assert.equal(await clock.until(later(response, 250)), response);
  assert.equal(clock.now - began, 250);
});

test("who waits in an object gets what Rust promised, and nobody looks any more when the last has left", async (t) => {
  const clock = new Clock(t);
  let looks = 0;
  const waiters = new Waiters(() => (looks += 1));
  const [first, second] = [1_000, 2_000].map((ms) =>
    waiters.keep(new Promise((resolve) => setTimeout(resolve, ms, `after ${ms}`))),
  );
  assert.equal(await clock.until(first), "after 1000");
  assert.equal(await clock.until(second), "after 2000");
  assert.equal(looks, 2_000 / LOOK_MS);
  assert.equal(clock.timers, 0);
  await assert.rejects(clock.until(waiters.keep(Promise.reject(new Error("of Rust")))), /of Rust/);
  assert.equal(clock.timers, 0);
});

test("all who wait are sent back where Rust has forgotten them, once, and others may wait again", async (t) => {
  const clock = new Clock(t);
  const waiters = new Waiters(() => {});
  const all = [waiters.keep(never()), waiters.keep(new Promise((resolve) => setTimeout(resolve, 10, "too late")))];
  waiters.forget();
  assert.deepEqual(
    (await clock.until(Promise.all(all))).map(({ status }) => status),
    [AGAIN, AGAIN],
  );
  await clock.pass(100);
  assert.equal(clock.timers, 0);
  assert.equal(await clock.until(waiters.keep(Promise.resolve("answer"))), "answer");
});

test("a look that finds the wasm made anew sends all back, and those who come later are looked after too", async (t) => {
  const clock = new Clock(t);
  const waiters = new Waiters(() => waiters.forget());
  for (let time = 0; time < 2; time += 1) {
    const began = clock.now;
    assert.equal((await clock.until(waiters.keep(never()))).status, AGAIN);
    assert.equal(clock.now - began, LOOK_MS);
    await settled();
    assert.equal(clock.timers, 0);
  }
});
