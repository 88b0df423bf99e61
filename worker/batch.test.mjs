// Lock calls that come together.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Batch } from "./batch.js";
import { settled } from "./played.mjs";

/** A batch over storage whose rounds the test ends, one by one, and what was served in which turn. */
function play({ sync, serve = (url) => `answer to ${url}` } = {}) {
  const rounds = [];
  const turns = [];
  let open = null;
  const storage = { sync: sync ?? (() => new Promise((resolve, reject) => rounds.push({ resolve, reject }))) };
  const batch = new Batch(storage, (url, request) => {
    if (open === null) {
      turns.push((open = []));
      queueMicrotask(() => (open = null));
    }
    open.push(url);
    return serve(url, request);
  });
  return { batch, rounds, turns };
}

test("calls that came together are served in one turn, in the order in which they came", async () => {
  const { batch, rounds, turns } = play();
  const answers = ["a", "b", "c"].map((url) => batch.arrive(url));
  await settled();
  assert.deepEqual(turns, [], "none before the runtime came round");
  rounds[0].resolve();
  assert.deepEqual(await Promise.all(answers), ["answer to a", "answer to b", "answer to c"]);
  assert.deepEqual([turns, rounds.length], [[["a", "b", "c"]], 1]);
});

test("a call gets to Rust as it came, and what Rust returns is the answer", async () => {
  const [request, answer] = [{}, {}];
  const { batch, rounds } = play({ serve: (url, given) => (given === request ? answer : assert.fail()) });
  const arrived = batch.arrive("a", request);
  rounds[0].resolve();
  assert.equal(await arrived, answer);
});

test("those who come while a commit is under way join it; those who come after are the next batch", async () => {
  const { batch, rounds, turns } = play();
  batch.arrive("a");
  await settled();
  batch.arrive("b");
  rounds[0].resolve();
  await settled();
  batch.arrive("c");
  await settled();
  rounds[1].resolve();
  await settled();
  assert.deepEqual(turns, [["a", "b"], ["c"]]);
});

test("a call that comes while a turn runs is of the next", async () => {
  let late;
  const played = play({ serve: (url) => (url === "a" ? (late = played.batch.arrive("late")) && url : url) });
  const { batch, rounds, turns } = played;
  const both = [batch.arrive("a"), batch.arrive("b")];
  rounds[0].resolve();
  await Promise.all(both);
  assert.deepEqual([turns, rounds.length], [[["a", "b"]], 2]);
  rounds[1].resolve();
  assert.equal(await late, "late");
});

test("storage that fails doesn't keep calls from their turn, and the next batch has a round of its own", async () => {
  const throws = () => {
    throw new Error("broken");
  };
  for (const sync of [() => Promise.reject(new Error("broken")), throws]) {
    const { batch, turns } = play({ sync });
    assert.deepEqual(await Promise.all([batch.arrive("a"), batch.arrive("b")]), ["answer to a", "answer to b"]);
    assert.equal(await batch.arrive("c"), "answer to c");
    assert.deepEqual(turns, [["a", "b"], ["c"]]);
  }
});

test("a call that throws or rejects is its own failure alone", async () => {
  const serve = (url) => {
    if (url === "throws") throw new Error("of this one");
    return url === "rejects" ? Promise.reject(new Error("later")) : url;
  };
  const { batch, rounds } = play({ serve });
  const all = Promise.allSettled(["a", "throws", "b", "rejects", "c"].map((url) => batch.arrive(url)));
  rounds[0].resolve();
  assert.deepEqual(
    (await all).map(({ value, reason }) => value ?? reason.message),
    ["a", "of this one", "b", "later", "c"],
  );
});

test("a call that waits holds up none that came with it", async () => {
  const { batch, rounds } = play({ serve: (url) => (url === "waits" ? new Promise(() => {}) : url) });
  batch.arrive("waits");
  const other = batch.arrive("b");
  rounds[0].resolve();
  assert.equal(await other, "b");
});
