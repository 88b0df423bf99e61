// Callers who wait while their object is reset are carried over, within their own time.

import { abortAllDurableObjects } from "cloudflare:test";
import { expect, test } from "vitest";
import { acquire, admin, createSource, expectError, free, grant, granted, isOpen, sleep, stateOf, untilDepth, waiter } from "./support";

const ONE = { concurrency: { limit: 1 } };

test("a waiter of an object that was reset waits on, and is served", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const { answer } = await waiter(source);
  await sleep(200);
  await abortAllDurableObjects();
  expect(await isOpen(answer, 300)).toBe(true);
  await untilDepth(source, 1);
  await free(source, slot);
  granted(await answer);
  expect(Number((await answer).headers.get("x-swarmvia-queued-ms"))).toBeGreaterThanOrEqual(450);
  expect(await stateOf(source)).toMatchObject({ inUse: 1, queueDepth: 0 });
});

test("they queue again by their first arrival", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const order: number[] = [];
  const waiting: Promise<void>[] = [];
  for (let i = 0; i < 5; i += 1) {
    const { answer } = await waiter(source);
    waiting.push(
      answer.then(async (came) => {
        order.push(i);
        await free(source, granted(came));
      }),
    );
    await sleep(20);
  }
  await abortAllDurableObjects();
  await untilDepth(source, 5);
  const late = await waiter(source);
  await free(source, slot);
  await Promise.all(waiting);
  granted(await late.answer);
  expect(order).toEqual([0, 1, 2, 3, 4]);
});

test("their time is not extended: 504 when it is over", async () => {
  const source = await createSource(ONE);
  await grant(source);
  const startedAt = Date.now();
  const { answer } = await waiter(source, { waitMs: 900 });
  await sleep(200);
  await abortAllDurableObjects();
  await sleep(200);
  await abortAllDurableObjects();
  expectError(await answer, 504, "queue_timeout");
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(890);
  expect(Date.now() - startedAt).toBeLessThan(2000);
  expect(Number((await answer).headers.get("x-swarmvia-queued-ms"))).toBeGreaterThanOrEqual(890);
});

test("they keep their places also in a queue that is full", async () => {
  const source = await createSource({ ...ONE, queue: { maxDepth: 2 } });
  const slot = await grant(source);
  const waiting = [await waiter(source), await waiter(source)];
  await abortAllDurableObjects();
  await untilDepth(source, 2);
  await free(source, slot);
  for (const { answer } of waiting) await free(source, granted(await answer));
});

test("two who share a place by Idempotency-Key still share it", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const first = await waiter(source, { idempotencyKey: "a" });
  const second = acquire(source, { idempotencyKey: "a", waitMs: 10_000 });
  await sleep(50);
  await abortAllDurableObjects();
  await untilDepth(source, 1);
  await sleep(300);
  await free(source, slot);
  const answers = [granted(await first.answer), granted(await second)];
  expect(answers[0].slotId).toBe(answers[1].slotId);
  expect(await stateOf(source)).toMatchObject({ inUse: 1, queueDepth: 0 });
});

test("a slot that comes free while they are carried over reaches them", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const waiting = [await waiter(source), await waiter(source), await waiter(source)];
  await Promise.all([abortAllDurableObjects(), free(source, slot)]);
  await Promise.all(waiting.map(async ({ answer }) => free(source, granted(await answer))));
  expect(await stateOf(source)).toMatchObject({ inUse: 0, queueDepth: 0 });
});

test("a revoked waiter is not carried in again", async () => {
  const source = await createSource(ONE);
  await grant(source);
  const { answer } = await waiter(source);
  await Promise.all([abortAllDurableObjects(), admin("DELETE", `/pools/${source.name}/keys/${source.keyId}`)]);
  expectError(await answer, 401, "unauthorized");
});
