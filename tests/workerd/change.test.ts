// A change of settings takes effect at once: limits also for waiters, bounds for newcomers. Promised deadlines never move.

import { expect, test } from "vitest";
import {
  acquire,
  configure,
  createSource,
  expectError,
  free,
  grant,
  granted,
  isOpen,
  renew,
  stateOf,
  stopClock,
  untilDepth,
  waiter,
} from "./support";

test("a raised limit wakes waiters at once, in order", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  const waiting = [await waiter(source), await waiter(source), await waiter(source)];
  await configure(source, { concurrency: { limit: 3 } });
  granted(await waiting[0].answer);
  granted(await waiting[1].answer);
  expect(await isOpen(waiting[2].answer, 50)).toBe(true);
  expect(await stateOf(source)).toMatchObject({ inUse: 3, queueDepth: 1 });
});

test("a lowered limit takes no slot away, and nothing is granted until enough were released", async () => {
  const source = await createSource({ concurrency: { limit: 4 } });
  const slots = [await grant(source), await grant(source), await grant(source), await grant(source)];
  await configure(source, { concurrency: { limit: 2 } });
  for (const slot of slots) expect((await renew(source, slot)).status).toBe(200);
  await free(source, slots[0]);
  await free(source, slots[1]);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
  const { answer } = await waiter(source);
  await free(source, slots[2]);
  granted(await answer);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
  expect(await stateOf(source)).toMatchObject({ inUse: 2, effectiveLimit: 2, remainingSlots: 0 });
});

test("a limit set while work runs counts that work", async () => {
  const source = await createSource({ concurrency: { limit: 100 } });
  for (let i = 0; i < 5; i += 1) await grant(source);
  await configure(source, { concurrency: { limit: 5 } });
  expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
});

test("deadlines already promised never move: not of a lease, not of a request", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source);
  await configure(source, { lease: { termMs: 500, requestTimeoutMs: 500 } });
  clock.pass(29_999);
  const renewed = await renew(source, slot);
  expect(renewed.body.leaseDeadline).toBe(clock.now + 500);
  for (let i = 0; i < 60; i += 1) {
    clock.pass(499);
    if (clock.now + 500 > slot.requestDeadline) break;
    expect((await renew(source, slot)).body.leaseDeadline).toBe(clock.now + 500);
  }
  expect((await renew(source, slot)).body.leaseDeadline).toBe(slot.requestDeadline);
});

test("a longer term holds for the next renewal and the next grant", async () => {
  const clock = stopClock();
  const source = await createSource({ lease: { termMs: 1000, requestTimeoutMs: 60_000 } });
  const slot = await grant(source);
  await configure(source, { lease: { termMs: 20_000, requestTimeoutMs: 40_000 } });
  expect((await renew(source, slot)).body.leaseDeadline).toBe(clock.now + 20_000);
  const next = await grant(source);
  expect(next).toMatchObject({ leaseDeadline: clock.now + 20_000, requestDeadline: clock.now + 40_000, termMs: 20_000 });
});

test("a waiter's time is not cut by a shorter queue.timeoutMs, and a newcomer's is", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const { answer } = await waiter(source);
  await configure(source, { concurrency: { limit: 1 }, queue: { timeoutMs: 40 } });
  expectError(await acquire(source, { waitMs: 5000 }), 504, "queue_timeout");
  expect(await isOpen(answer, 100)).toBe(true);
  await free(source, slot);
  granted(await answer);
});

test("waiters stay in a queue that was made shorter, and newcomers are refused", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  let slot = await grant(source);
  const waiting = [await waiter(source), await waiter(source)];
  await configure(source, { concurrency: { limit: 1 }, queue: { maxDepth: 1 } });
  expectError(await acquire(source, { waitMs: 1000 }), 429, "too_many_requests", { reason: "queue_full" });
  for (const { answer } of waiting) {
    await free(source, slot);
    slot = granted(await answer);
  }
  await waiter(source, { waitMs: 50 });
  await untilDepth(source, 0);
});

test("a change that is refused wakes nobody and moves nothing", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  const { answer } = await waiter(source, { waitMs: 300 });
  expectError(await configure(source, { concurrency: { limit: 5 }, log: { keep: 1 } }), 400, "invalid_request");
  expectError(await configure(source, { concurrency: { limit: 5 } }, { "If-Match": '"x"' }), 412, "precondition_failed");
  expectError(await answer, 504, "queue_timeout");
});
