// Callers who wait: first come, first served, each within its own time.

import { expect, test } from "vitest";
import {
  acquire,
  createSource,
  expectError,
  free,
  grant,
  granted,
  isOpen,
  release,
  renew,
  sleep,
  stateOf,
  untilDepth,
  waiter,
} from "./support";

const ONE = { concurrency: { limit: 1 } };

test("a freed slot goes to the waiter at once, and its term starts at the grant", async () => {
  const source = await createSource({ ...ONE, lease: { termMs: 2000, requestTimeoutMs: 3000 } });
  const slot = await grant(source);
  const { answer } = await waiter(source);
  await sleep(300);
  const freedAt = Date.now();
  await free(source, slot);
  const next = granted(await answer);
  expect(Date.now() - freedAt).toBeLessThan(250);
  expect(next.leaseDeadline).toBeGreaterThanOrEqual(freedAt + 2000);
  expect(next.requestDeadline).toBe(next.leaseDeadline + 1000);
  expect(Number((await answer).headers.get("x-swarmvia-queued-ms"))).toBeGreaterThanOrEqual(290);
});

test("waiters are served in order of arrival", async () => {
  const source = await createSource(ONE);
  let slot = await grant(source);
  const order: number[] = [];
  const waiting: Promise<void>[] = [];
  for (let i = 0; i < 6; i += 1) {
    const { answer } = await waiter(source);
    waiting.push(
      answer.then(async (came) => {
        order.push(i);
        await free(source, granted(came));
      }),
    );
  }
  await free(source, slot);
  await Promise.all(waiting);
  expect(order).toEqual([0, 1, 2, 3, 4, 5]);
  expect(await stateOf(source)).toMatchObject({ inUse: 0, queueDepth: 0 });
});

test("X-Swarmvia-Queue-Timeout-Ms is the same as waitMs", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const { answer } = await waiter(source, { body: "{}", headers: { "X-Swarmvia-Queue-Timeout-Ms": "5000" } });
  await free(source, slot);
  granted(await answer);
});

test("waitMs wins over the header, whichever is longer", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  expectError(await acquire(source, { waitMs: 40, headers: { "X-Swarmvia-Queue-Timeout-Ms": "9000" } }), 504, "queue_timeout");
  const { answer } = await waiter(source, { waitMs: 9000, headers: { "X-Swarmvia-Queue-Timeout-Ms": "40" } });
  expect(await isOpen(answer, 150)).toBe(true);
  await free(source, slot);
  granted(await answer);
});

test.each(["", "x", "-1", "1.5", "5 s", "1,2", "0x10", "Infinity"])("a header of %j is 400, also where the body wins", async (value) => {
  const source = await createSource();
  const answer = await acquire(source, { waitMs: 5, headers: { "X-Swarmvia-Queue-Timeout-Ms": value } });
  expectError(answer, 400, "invalid_request");
  expect(answer.body.field.toLowerCase()).toBe("x-swarmvia-queue-timeout-ms");
  expect((await stateOf(source)).inUse).toBe(0);
});

test("who waited as long as allowed gets 504, and holds nothing", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const startedAt = Date.now();
  const answer = await acquire(source, { waitMs: 200 });
  expectError(answer, 504, "queue_timeout");
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(195);
  expect(Date.now() - startedAt).toBeLessThan(1200);
  expect(Number(answer.headers.get("x-swarmvia-queued-ms"))).toBeGreaterThanOrEqual(195);
  expect(await stateOf(source)).toMatchObject({ inUse: 1, queueDepth: 0 });
  await free(source, slot);
  expect((await stateOf(source)).inUse).toBe(0);
});

test("waitMs is clamped to queue.timeoutMs", async () => {
  const source = await createSource({ ...ONE, queue: { timeoutMs: 100 } });
  await grant(source);
  const startedAt = Date.now();
  expectError(await acquire(source, { waitMs: 600_000 }), 504, "queue_timeout");
  expect(Date.now() - startedAt).toBeLessThan(1100);
});

test("with queue.timeoutMs 0 nobody waits", async () => {
  const source = await createSource({ ...ONE, queue: { timeoutMs: 0 } });
  await grant(source);
  expectError(await acquire(source, { waitMs: 600_000 }), 429, "too_many_requests", { reason: "no_free_slot" });
});

test("the queue is bounded: who would wait past maxDepth gets 429 queue_full", async () => {
  const source = await createSource({ ...ONE, queue: { maxDepth: 2 } });
  const slot = await grant(source);
  const waiting = [await waiter(source), await waiter(source)];
  const answer = await acquire(source, { waitMs: 5000 });
  expectError(answer, 429, "too_many_requests", { reason: "queue_full" });
  expect(answer.headers.get("x-swarmvia-queue-depth")).toBe("2");
  expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
  await free(source, slot);
  for (const { answer } of waiting) await free(source, granted(await answer));
});

test("with maxDepth 0 there is no queue", async () => {
  const source = await createSource({ ...ONE, queue: { maxDepth: 0 } });
  await grant(source, { waitMs: 5000 });
  expectError(await acquire(source, { waitMs: 5000 }), 429, "too_many_requests", { reason: "queue_full" });
});

test("who timed out is skipped", async () => {
  const source = await createSource(ONE);
  const slot = await grant(source);
  const brief = await waiter(source, { waitMs: 150 });
  const patient = await waiter(source);
  expectError(await brief.answer, 504, "queue_timeout");
  await untilDepth(source, 1);
  await free(source, slot);
  granted(await patient.answer);
  expect(await stateOf(source)).toMatchObject({ inUse: 1, queueDepth: 0 });
});

test("a vanished holder's slot goes to the waiter one term after its last renewal, with no other traffic", async () => {
  const source = await createSource({ ...ONE, lease: { termMs: 500 } });
  const slot = await grant(source);
  await sleep(200);
  const { leaseDeadline } = (await renew(source, slot)).body;
  granted(await acquire(source, { waitMs: 5000 }));
  expect(Date.now()).toBeGreaterThanOrEqual(leaseDeadline);
  expect(Date.now()).toBeLessThan(leaseDeadline + 1000);
  expect((await release(source, slot)).body).toEqual({ released: false });
});

test("a waiter who was granted and never renews is followed by the next, one term later", async () => {
  const source = await createSource({ ...ONE, lease: { termMs: 500 } });
  await grant(source);
  const [silent, next] = [await waiter(source), await waiter(source)];
  const first = granted(await silent.answer);
  const second = granted(await next.answer);
  expect(second.leaseDeadline - 500).toBeGreaterThanOrEqual(first.leaseDeadline);
  expect(second.leaseDeadline - 500).toBeLessThan(first.leaseDeadline + 1000);
});
