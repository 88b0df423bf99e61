// Bodies as odd clients send them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readRequest, readStream, readThen } from "./bodies.js";
import { Clock, quiet } from "./played.mjs";

const bytes = (text) => new TextEncoder().encode(text);
const text = (read) => (typeof read === "string" ? read : new TextDecoder().decode(read));
const whole = (size) => new Uint8Array(size).fill(7);

/** A stream of `chunks`, and then what `end` does; whether it was let go. */
function stream(chunks, end = (out) => out.close()) {
  const left = [...chunks];
  const it = { isLetGo: false };
  it.body = new ReadableStream(
    { pull: (out) => (left.length > 0 ? out.enqueue(left.shift()) : end(out)), cancel: () => void (it.isLetGo = true) },
    { highWaterMark: 0 },
  );
  return it;
}
const breaks = (out) => out.error(new Error("reset by peer"));
const never = () => new Promise(() => {});

const undeclared = (body) => ({ headers: new Headers(), body, arrayBuffer: () => assert.fail("read in one go") });
const declared = (arrayBuffer) => ({
  headers: new Headers({ "Content-Length": "2" }),
  get body() {
    return assert.fail("read chunk by chunk");
  },
  arrayBuffer,
});

test("a stream is read whole, chunk after chunk", async () => {
  for (const chunks of [[], [bytes("")], [bytes("{}")], [bytes("{"), bytes(""), bytes("}")]]) {
    const expected = chunks.map(text).join("");
    assert.equal(text(await readStream(stream(chunks).body, 2)), expected);
  }
});

test("what has no declared length is read within the bound: one byte more is large, and the rest is let go", async () => {
  assert.equal((await readRequest(undeclared(stream([whole(60), whole(40)]).body), 100, 50)).length, 100);
  for (const chunks of [[whole(60), whole(41), whole(5)], [whole(101)]]) {
    const sent = stream(chunks);
    assert.equal(await readRequest(undeclared(sent.body), 100, 50), "large");
    assert.equal(sent.isLetGo, true);
  }
});

test("a stream that can't be let go is large all the same", async () => {
  const body = new ReadableStream({
    pull: (out) => out.enqueue(whole(9)),
    cancel: () => Promise.reject(new Error("no")),
  });
  assert.equal(await readStream(body, 5), "large");
});

test("what has a declared length is read in one go", async () => {
  assert.equal(
    text(
      await readRequest(
        declared(async () => bytes("{}").buffer),
        100,
        50,
      ),
    ),
    "{}",
  );
});

test("what has no body is empty", async () => {
  assert.equal((await readRequest(undeclared(null), 100, 50)).length, 0);
});

test("what breaks off is broken, declared or not", async () => {
  assert.equal(await readRequest(undeclared(stream([whole(5)], breaks).body), 100, 50), "broken");
  assert.equal(
    await readRequest(
      declared(() => Promise.reject(new Error("reset"))),
      100,
      50,
    ),
    "broken",
  );
  assert.equal(await readStream(stream([], breaks).body, 100), "broken");
});

test("what isn't at its end in time is slow, declared or not, and what was begun is let go", async (t) => {
  const clock = new Clock(t);
  const endless = stream([whole(5)], never);
  for (const request of [undeclared(endless.body), declared(never)]) {
    const began = clock.now;
    assert.equal(await clock.until(readRequest(request, 100, 5_000)), "slow");
    assert.equal(clock.now - began, 5_000);
  }
  assert.equal(endless.isLetGo, true);
  assert.equal(clock.timers, 0);
});

test("what was read in time leaves no timer", async (t) => {
  const clock = new Clock(t);
  await clock.until(readRequest(undeclared(stream([whole(5)]).body), 100, 5_000));
  await clock.until(
    readRequest(
      declared(async () => bytes("{}").buffer),
      100,
      5_000,
    ),
  );
  assert.equal(clock.timers, 0);
});

test("a call goes on with what was read or the word why not, and the time that it took", async (t) => {
  const clock = new Clock(t);
  const late = declared(() => new Promise((resolve) => setTimeout(resolve, 1_200, bytes("{}").buffer)));
  for (const [request, expected, took] of [
    [late, "{}", 1_200],
    [undeclared(stream([whole(200)]).body), "large", 0],
    [declared(never), "slow", 5_000],
  ]) {
    const goOn = (...given) => given;
    const [given, known, said, read, time] = await clock.until(readThen(request, 100, 5_000, "known", "said", goOn));
    assert.deepEqual([given === request, known, said, text(read), time], [true, "known", "said", expected, took]);
  }
});

test("a Rust that throws or rejects is a 503", async (t) => {
  quiet(t);
  const throws = () => {
    throw new Error("unreachable");
  };
  for (const goOn of [throws, async () => throws()]) {
    assert.equal((await readThen(undeclared(null), 100, 5_000, "known", "said", goOn)).status, 503);
  }
});
