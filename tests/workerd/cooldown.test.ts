// A report that asks to hold back closes the gate, until the moment it named.

import { expect, test } from "vitest";
import { acquire, admin, configure, createSource, expectError, free, grant, granted, stateOf, stopClock, waiter, type Source } from "./support";

const explain = (source: { name: string }, report: unknown) => admin("POST", `/pools/${source.name}/explain`, report);

test.each([
  { retryAfterMs: 4000 },
  { status: 429, retryAfterMs: 4000 },
  { status: 503, retryAfterMs: 4000 },
  { status: 529, headers: { "retry-after": "4" } },
  { status: 403, headers: { "retry-after": "4" } },
  { status: 403, rate: { remaining: 0, resetMs: 4000 } },
  { status: 403, rate: { tokenRemaining: 0, retryAfterMs: 4000 } },
  { status: 200, rate: { tokenRemaining: 0, tokenResetMs: 4000 } },
  { status: 404, headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "4" } },
  { status: 200, throttled: 1, retryAfterMs: 4000 },
  { status: 500, throttled: 3, retryAfterMs: 4000 },
  { throttled: 0, retryAfterMs: 4000 },
])("a report closes the gate, and it opens when it said: %j", async (report) => {
  const clock = stopClock();
  const source = await createSource();
  expect((await explain(source, report)).body.closesGateForMs).toBe(4000);
  await free(source, await grant(source), report);
  expect((await stateOf(source)).cooldownUntil).toBe(clock.now + 4000);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "cooldown", retryAfterMs: 4000 });
  clock.pass(3999);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "cooldown", retryAfterMs: 1 });
  clock.pass(1);
  expect((await stateOf(source)).cooldownUntil).toBeNull();
  await grant(source);
});

test.each([
  { status: 200, retryAfterMs: 4000 },
  { status: 500, retryAfterMs: 4000 },
  { status: 200, throttled: 0, retryAfterMs: 4000 },
  { status: 200, headers: { "retry-after": "4" } },
  { status: 403 },
  { status: 403, rate: { remaining: 1, resetMs: 4000 } },
  { status: 404, retryAfterMs: 4000 },
  { status: 529 },
  { status: 429 },
  { status: 503, throttled: 5 },
  { throttled: 5 },
  { status: 429, retryAfterMs: 0 },
  {},
])("a report leaves the gate open: %j", async (report) => {
  const source = await createSource();
  expect((await explain(source, report)).body.closesGateForMs ?? 0).toBe(0);
  await free(source, await grant(source), report);
  expect((await stateOf(source)).cooldownUntil).toBeNull();
  await grant(source);
});

test.each([
  [{ status: 529, retryAfterMs: 4000 }, 1],
  [{ status: 403, retryAfterMs: 4000 }, 1],
  [{ status: 403, rate: { tokenRemaining: 0 } }, 1],
  [{ throttled: 0, retryAfterMs: 4000 }, 1],
  [{ status: 403 }, 0],
  [{ status: 200, retryAfterMs: 4000 }, 0],
])("what closes the gate by a hint is what counts as throttled: %j", async (report, throttled) => {
  const source = await createSource();
  const { body } = await explain(source, report);
  expect(body.signal).toBe(throttled ? "throttled" : "served");
  await free(source, await grant(source), report);
  expect((await stateOf(source)).counters.throttled).toBe(throttled);
});

test("a later moment extends it, an earlier one does not shorten it", async () => {
  const clock = stopClock();
  const source = await createSource();
  const [one, two, three] = [await grant(source), await grant(source), await grant(source)];
  const start = clock.now;
  await free(source, one, { retryAfterMs: 5000 });
  clock.pass(1000);
  await free(source, two, { retryAfterMs: 2000 });
  expect((await stateOf(source)).cooldownUntil).toBe(start + 5000);
  await free(source, three, { retryAfterMs: 9000 });
  expect((await stateOf(source)).cooldownUntil).toBe(start + 10_000);
});

test.each([30 * 365 * 86_400_000, 9007199254740993, 1e300])("one report closes it for ten minutes at most: %d ms", async (retryAfterMs) => {
  const clock = stopClock();
  const source = await createSource();
  await free(source, await grant(source), { status: 429, retryAfterMs });
  expectError(await acquire(source), 429, "too_many_requests", { reason: "cooldown", retryAfterMs: 600_000 });
  clock.pass(600_000);
  await grant(source);
});

test("slots that are held stay held, and can be released", async () => {
  const source = await createSource({ concurrency: { limit: 2 } });
  const [one, two] = [await grant(source), await grant(source)];
  await free(source, one, { retryAfterMs: 60_000 });
  await free(source, two);
  expect(await stateOf(source)).toMatchObject({ inUse: 0, remainingSlots: 2 });
});

test("who waits is served as the gate opens, in order", async () => {
  const source = await createSource();
  await free(source, await grant(source), { status: 429, retryAfterMs: 400 });
  const { cooldownUntil } = await stateOf(source);
  const waiting = [await waiter(source), await waiter(source)];
  for (const { answer } of waiting) {
    const slot = granted(await answer);
    expect(slot.leaseDeadline - slot.termMs).toBeGreaterThanOrEqual(cooldownUntil);
    expect(slot.leaseDeadline - slot.termMs).toBeLessThan(cooldownUntil + 500);
  }
});

test("a report that extends it holds waiters back for longer", async () => {
  const source = await createSource();
  const [one, two] = [await grant(source), await grant(source)];
  await free(source, one, { retryAfterMs: 150 });
  const { answer } = await waiter(source);
  await free(source, two, { retryAfterMs: 500 });
  const { cooldownUntil } = await stateOf(source);
  const slot = granted(await answer);
  expect(slot.leaseDeadline - slot.termMs).toBeGreaterThanOrEqual(cooldownUntil);
});

test("who would wait gets queue_full before cooldown", async () => {
  const source = await createSource({ queue: { maxDepth: 0 } });
  await free(source, await grant(source), { retryAfterMs: 60_000 });
  expectError(await acquire(source, { waitMs: 1000 }), 429, "too_many_requests", { reason: "queue_full" });
  expectError(await acquire(source), 429, "too_many_requests", { reason: "cooldown" });
});

test("who waits past its own time gets 504, though the gate is closed for longer", async () => {
  const source = await createSource();
  await free(source, await grant(source), { retryAfterMs: 60_000 });
  expectError(await acquire(source, { waitMs: 60 }), 504, "queue_timeout");
});

test("who waited in vain is told what kept it, and when to come again", async () => {
  const clock = stopClock();
  const closed = await createSource({ rpm: { limit: 1 } });
  await free(closed, await grant(closed), { retryAfterMs: 20_000 });
  const held = await createSource({ concurrency: { limit: 1 } });
  await grant(held);
  const told = async (source: Source) => {
    const waiting = await waiter(source, { waitMs: 60 });
    clock.pass(60);
    const answer = await waiting.answer;
    expectError(answer, 504, "queue_timeout");
    return answer;
  };
  const rpm = await told(closed);
  expect(rpm.body).toMatchObject({ reason: "rpm", retryAfterMs: 59_940 });
  await configure(closed, { rpm: { limit: null } });
  const cooldown = await told(closed);
  expect(cooldown.body).toMatchObject({ reason: "cooldown", retryAfterMs: 19_880 });
  const full = await told(held);
  expect(full.body.reason).toBe("no_free_slot");
  expect(full.body).not.toHaveProperty("retryAfterMs");
  const seconds = [rpm, cooldown, full].map((answer) => Number(answer.headers.get("Retry-After")));
  for (const [index, [least, most]] of [[60, 75], [20, 25], [1, 5]].entries()) {
    expect(seconds[index]).toBeGreaterThanOrEqual(least as number);
    expect(seconds[index]).toBeLessThanOrEqual(most as number);
  }
});

test("it holds back one source only", async () => {
  const [one, other] = [await createSource(), await createSource()];
  await free(one, await grant(one), { retryAfterMs: 60_000 });
  await grant(other);
});
