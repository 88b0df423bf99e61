// An acquire that will not wait.

import { expect, test } from "vitest";
import { acquire, createSource, expectError, free, grant, granted, isOpen, stateOf, waiter } from "./support";

test.each([
  ["no waitMs", {}],
  ["waitMs 0", { waitMs: 0 }],
  ["waitMs 0 over a header that would wait", { waitMs: 0, headers: { "X-Swarmvia-Queue-Timeout-Ms": "5000" } }],
  ["a header of 0", { headers: { "X-Swarmvia-Queue-Timeout-Ms": "0" } }],
])("without a free slot it answers 429 at once: %s", async (_, ask) => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  const answer = await acquire(source, ask);
  expectError(answer, 429, "too_many_requests", { reason: "no_free_slot" });
  expect(answer.body).not.toHaveProperty("retryAfterMs");
  expect(answer.headers.get("x-swarmvia-queued-ms")).toBe("0");
});

test.each(["1", "true", "yes", "no", "00", "null", ""])("X-Swarmvia-No-Queue: %j forces it, whatever waitMs says", async (value) => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  const headers = { "X-Swarmvia-No-Queue": value, "X-Swarmvia-Queue-Timeout-Ms": "5000" };
  expectError(await acquire(source, { waitMs: 5000, headers }), 429, "too_many_requests", { reason: "no_free_slot" });
});

test.each(["0", "false"])("X-Swarmvia-No-Queue: %s does not force it", async (value) => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  expectError(await acquire(source, { waitMs: 40, headers: { "X-Swarmvia-No-Queue": value } }), 504, "queue_timeout");
});

test("X-Swarmvia-No-Queue does not hide a malformed waitMs", async () => {
  const source = await createSource();
  const headers = { "X-Swarmvia-No-Queue": "1" };
  expectError(await acquire(source, { body: '{"waitMs":"x"}', headers }), 400, "invalid_request", { field: "waitMs" });
});

test("it never overtakes a waiter: not for the slot that is freed as it arrives", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const first = await waiter(source);
  const [, hasty] = await Promise.all([free(source, slot), acquire(source)]);
  expectError(hasty, 429, "too_many_requests", { reason: "no_free_slot" });
  granted(await first.answer);
});

test("it never overtakes a waiter: not while a gate holds the waiter back from a free slot", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await free(source, await grant(source), { retryAfterMs: 400 });
  const first = await waiter(source);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "cooldown" });
  granted(await first.answer);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
});

test("it takes no place in the queue", async () => {
  const source = await createSource({ concurrency: { limit: 1 }, queue: { maxDepth: 1 } });
  const slot = await grant(source);
  for (let i = 0; i < 5; i += 1) expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
  const { answer } = await waiter(source);
  expect(await isOpen(answer, 30)).toBe(true);
  await free(source, slot);
  granted(await answer);
  expect(await stateOf(source)).toMatchObject({ inUse: 1, queueDepth: 0 });
});

test("with a queue of no places nobody waits, however the clock ticks meanwhile", async () => {
  const source = await createSource({ concurrency: { limit: 1 }, queue: { maxDepth: 0 } });
  await grant(source);
  const answers = await Promise.all(Array.from({ length: 400 }, () => acquire(source, { waitMs: 60 })));
  for (const answer of answers) expectError(answer, 429, "too_many_requests", { reason: "queue_full" });
});
