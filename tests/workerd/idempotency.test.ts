// Idempotency-Key: the same acquire twice is one slot and one place in the queue.

import { expect, test } from "vitest";
import {
  acquire,
  configure,
  createSource,
  expectError,
  expectHeld,
  free,
  grant,
  granted,
  isOpen,
  mintKey,
  release,
  renew,
  sleep,
  stateOf,
  stopClock,
  untilDepth,
  waiter,
} from "./support";

const ONE = { concurrency: { limit: 1 } };
const JOB = { idempotencyKey: "job-1" };
const replayed = (answer: { headers: Headers }) => answer.headers.get("x-swarmvia-replayed");

test("a repeat while the slot is held answers with that same slot and takes no second one", async () => {
  const source = await createSource();
  const first = await acquire(source, JOB);
  const again = await acquire(source, JOB);
  expect(again.body).toEqual(granted(first));
  expect(replayed(first)).toBeNull();
  expect(replayed(again)).toBe("true");
  expect(again.headers.get("x-swarmvia-remaining-slots")).toBe("9");
  await expectHeld(source, 1);
});

test("a repeat is answered where a new caller would be refused: no slot free, a gate closed", async () => {
  const source = await createSource({ concurrency: { limit: 2 }, rpm: { limit: 2 } });
  const { slotId } = await grant(source, JOB);
  await free(source, await grant(source), { retryAfterMs: 60_000 });
  for (const ask of [JOB, { ...JOB, waitMs: 5000 }]) {
    const again = await acquire(source, ask);
    expect(granted(again).slotId).toBe(slotId);
    expect(replayed(again)).toBe("true");
    expect(again.headers.get("x-swarmvia-rpm-remaining")).toBe("0");
  }
});

test("a repeat shows the lease as it stands and termMs as it is now", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source, JOB);
  clock.pass(5000);
  await renew(source, slot);
  await configure(source, { lease: { termMs: 9000, renewIntervalMs: 2000 } });
  expect(granted(await acquire(source, JOB))).toEqual({ ...slot, leaseDeadline: clock.now + 30_000, termMs: 9000, renewIntervalMs: 2000 });
});

test("a repeat does not extend the lease", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source, JOB);
  clock.pass(29_999);
  expect(granted(await acquire(source, JOB)).leaseDeadline).toBe(slot.leaseDeadline);
  clock.pass(1);
  expect((await renew(source, slot)).status).toBe(404);
});

test("once the slot is released or its lease has ended, the key takes a new slot", async () => {
  const clock = stopClock();
  const source = await createSource();
  const first = await grant(source, JOB);
  await free(source, first);
  const second = await acquire(source, JOB);
  expect(granted(second).slotId).not.toBe(first.slotId);
  expect(replayed(second)).toBeNull();
  clock.pass(30_000);
  const third = await acquire(source, JOB);
  expect(granted(third).slotId).not.toBe(second.body.slotId);
  expect(replayed(third)).toBeNull();
  await expectHeld(source, 1);
});

test("repeats at the same moment are one slot", async () => {
  const source = await createSource();
  const answers = await Promise.all(Array.from({ length: 20 }, () => acquire(source, { ...JOB, waitMs: 1000 })));
  expect(new Set(answers.map((answer) => granted(answer).slotId)).size).toBe(1);
  expect(answers.filter((answer) => replayed(answer) === null)).toHaveLength(1);
  await expectHeld(source, 1);
});

test("a repeat while the first is queued joins it: one place, one slot, both answered", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const first = await waiter(source, JOB);
  const joined = acquire(source, { ...JOB, waitMs: 5000 });
  expect(await isOpen(joined, 80)).toBe(true);
  expect((await stateOf(source)).queueDepth).toBe(1);
  await free(source, slot);
  const answers = [await first.answer, await joined];
  expect(granted(answers[1]).slotId).toBe(granted(answers[0]).slotId);
  expect(answers.map(replayed)).toEqual([null, "true"]);
  expect(await stateOf(source)).toMatchObject({ inUse: 1, queueDepth: 0 });
});

test("whoever joined has its own waiting time, and its leaving keeps the place", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const first = await waiter(source, JOB);
  expectError(await acquire(source, { ...JOB, waitMs: 80 }), 504, "queue_timeout");
  expect((await stateOf(source)).queueDepth).toBe(1);
  await free(source, slot);
  granted(await first.answer);
});

test("the place stays where it was when the first in it times out", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const first = await waiter(source, { ...JOB, waitMs: 250 });
  const later = await waiter(source);
  const joined = acquire(source, { ...JOB, waitMs: 5000 });
  expectError(await first.answer, 504, "queue_timeout");
  expect((await stateOf(source)).queueDepth).toBe(2);
  await free(source, slot);
  const next = granted(await joined);
  expect(await isOpen(later.answer, 50)).toBe(true);
  await free(source, next);
  granted(await later.answer);
});

test("a repeat is marked as one, too, when the first in its place timed out or left", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const first = await waiter(source, { ...JOB, waitMs: 150 });
  const joined = [acquire(source, { ...JOB, waitMs: 5000 }), acquire(source, { ...JOB, waitMs: 5000 })];
  expectError(await first.answer, 504, "queue_timeout");
  await free(source, slot);
  const answers = await Promise.all(joined);
  expect(answers.map(replayed)).toEqual(["true", "true"]);
  expect(granted(answers[0]!).slotId).toBe(granted(answers[1]!).slotId);
  await expectHeld(source, 1);
});

test("one more than may share a place is told queue_full, and a fail-fast one no_free_slot", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const callers = Array.from({ length: 17 }, () => acquire(source, { ...JOB, waitMs: 5000 }));
  const refused = await Promise.race(callers);
  expectError(refused, 429, "too_many_requests", { reason: "queue_full" });
  expectError(await acquire(source, JOB), 429, "too_many_requests", { reason: "no_free_slot" });
  await free(source, slot);
  const answers = await Promise.all(callers);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(16);
  expect(answers.filter((answer) => answer.status === 200 && replayed(answer) === null)).toHaveLength(1);
});

test("a fail-fast repeat while the first is queued gets 429 and leaves the place as it is", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const first = await waiter(source, JOB);
  expectError(await acquire(source, JOB), 429, "too_many_requests", { reason: "no_free_slot" });
  expect((await stateOf(source)).queueDepth).toBe(1);
  await free(source, slot);
  granted(await first.answer);
});

test("a repeat after a time-out is a new attempt", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  expectError(await acquire(source, { ...JOB, waitMs: 40 }), 504, "queue_timeout");
  await free(source, slot);
  expect(replayed(await acquire(source, JOB))).toBeNull();
});

test("keys are scoped to the family: two teams that both say job-1 do not meet", async () => {
  const source = await createSource();
  const other = await mintKey(source);
  const mine = await grant(source, JOB);
  const theirs = await acquire(source, { ...JOB, key: other.key });
  expect(granted(theirs).slotId).not.toBe(mine.slotId);
  expect(replayed(theirs)).toBeNull();
  await expectHeld(source, 2);
});

test("keys that differ are different attempts, however little", async () => {
  const source = await createSource();
  const names = ["a", "A", "a.", "a".repeat(255), `${"a".repeat(254)}b`, "!~"];
  const slots = [];
  for (const idempotencyKey of names) slots.push(await grant(source, { idempotencyKey }));
  expect(new Set(slots.map((slot) => slot.slotId)).size).toBe(names.length);
});

test.each([
  ["empty", ""],
  ["too long", "x".repeat(256)],
  ["with a space", "job 1"],
  ["not ASCII", "jöb"],
  ["with a tab", "job\t1"],
])("a key that is %s is 400 and takes no slot", async (_, idempotencyKey) => {
  const source = await createSource();
  const answer = await acquire(source, { idempotencyKey });
  expectError(answer, 400, "invalid_request");
  expect(answer.body.field.toLowerCase()).toBe("idempotency-key");
  await expectHeld(source, 0);
});

test("a repeat after the first caller's slot was taken back by its lease does not get it again", async () => {
  const source = await createSource({ ...ONE, lease: { termMs: 500 } });
  const first = await grant(source, JOB);
  const second = granted(await acquire(source, { waitMs: 3000 }));
  expectError(await acquire(source, JOB), 429, "too_many_requests");
  expect((await release(source, first)).body).toEqual({ released: false });
  expect((await renew(source, second)).status).toBe(200);
});

test("a place that several share is given up when all of them have timed out", async () => {
  const source = await createSource(ONE);
  await grant(source);
  const answers = await Promise.all([60, 90, 120].map((waitMs) => acquire(source, { ...JOB, waitMs })));
  for (const answer of answers) expectError(answer, 504, "queue_timeout");
  await untilDepth(source, 0);
  await sleep(20);
  await expectHeld(source, 1);
});
