// Requests per minute: in no window of 60 s are there more grants than rpm.limit.

import { abortAllDurableObjects } from "cloudflare:test";
import { expect, test } from "vitest";
import { acquire, configure, createSource, expectError, free, grant, granted, isOpen, stateOf, stopClock, waiter } from "./support";

test("after rpm.limit grants it refuses until the first is 60 s old, and then admits", async () => {
  const clock = stopClock();
  const source = await createSource({ rpm: { limit: 2 } });
  await free(source, await grant(source));
  clock.pass(1000);
  await free(source, await grant(source));
  expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm", retryAfterMs: 59_000 });
  clock.pass(58_999);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm", retryAfterMs: 1 });
  clock.pass(1);
  await free(source, await grant(source));
  expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm", retryAfterMs: 1000 });
});

test("the window slides: no edge lets twice the limit through", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 100 }, rpm: { limit: 10 } });
  const grants: number[] = [];
  for (let step = 0; step < 60; step += 1) {
    for (let i = 0; i < 3; i += 1) {
      const answer = await acquire(source);
      if (answer.status === 200) grants.push(clock.now);
      else expectError(answer, 429, "too_many_requests", { reason: "rpm" });
    }
    clock.pass(3700);
  }
  expect(grants.length).toBeGreaterThanOrEqual(30);
  for (const start of grants) expect(grants.filter((at) => at >= start && at < start + 60_000).length).toBeLessThanOrEqual(10);
});

test("what counts is known each time the object wakes, however much was logged beside it", async () => {
  stopClock();
  const source = await createSource({ concurrency: { limit: 1 }, rpm: { limit: 100 }, log: { keep: 100 } });
  for (let wakes = 1; wakes <= 4; wakes += 1) {
    let slot = await grant(source);
    for (let i = 0; i < 80; i += 1) {
      if (i % 8 === 0) {
        await free(source, slot);
        slot = await grant(source);
      }
      expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
    }
    await free(source, slot);
    await abortAllDurableObjects();
    expect((await stateOf(source)).rpm.used).toBe(wakes * 11);
  }
});

test("a burst does not overshoot", async () => {
  const source = await createSource({ concurrency: { limit: 50 }, rpm: { limit: 7 } });
  const answers = await Promise.all(Array.from({ length: 40 }, () => acquire(source)));
  expect(answers.filter((answer) => answer.status === 200)).toHaveLength(7);
  for (const answer of answers.filter((answer) => answer.status !== 200)) expectError(answer, 429, "too_many_requests", { reason: "rpm" });
});

test("only a grant counts: refusals, repeats, renewals and releases do not", async () => {
  const source = await createSource({ concurrency: { limit: 1 }, rpm: { limit: 3 } });
  const slot = await grant(source, { idempotencyKey: "a" });
  await grant(source, { idempotencyKey: "a" });
  expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
  expectError(await acquire(source, { waitMs: 30 }), 504, "queue_timeout");
  expectError(await acquire(source, { body: "{" }), 400, "invalid_request");
  expectError(await acquire(source, { key: "sv_at_x" }), 401, "unauthorized");
  await free(source, slot);
  const { rpm } = await stateOf(source);
  expect(rpm).toEqual({ limit: 3, used: 1, remaining: 2, opensAt: null });
});

test("grants made before the limit was set count", async () => {
  const clock = stopClock();
  const source = await createSource();
  for (let i = 0; i < 3; i += 1) await free(source, await grant(source));
  clock.pass(20_000);
  await configure(source, { rpm: { limit: 3 } });
  expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm", retryAfterMs: 40_000 });
  expect((await stateOf(source)).rpm).toEqual({ limit: 3, used: 3, remaining: 0, opensAt: clock.now + 40_000 });
});

test("a lower limit opens the gate only when few enough grants are in the window", async () => {
  const clock = stopClock();
  const source = await createSource({ rpm: { limit: 5 } });
  for (let i = 0; i < 4; i += 1) {
    await free(source, await grant(source));
    clock.pass(10_000);
  }
  await configure(source, { rpm: { limit: 2 } });
  const answer = await acquire(source);
  expectError(answer, 429, "too_many_requests", { reason: "rpm", retryAfterMs: 40_000 });
  expect(answer.headers.get("x-swarmvia-rpm-remaining")).toBe("0");
  clock.pass(39_999);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm", retryAfterMs: 1 });
  clock.pass(1);
  await grant(source);
});

test.each([
  ["raised", { rpm: { limit: 2 } }],
  ["taken away", { rpm: { limit: null } }],
])("a limit that is %s wakes who waits for it", async (_, settings) => {
  const source = await createSource({ rpm: { limit: 1 } });
  await free(source, await grant(source));
  const { answer } = await waiter(source);
  expect(await isOpen(answer, 30)).toBe(true);
  await configure(source, settings);
  granted(await answer);
});

test("a closed gate comes before no_free_slot, and of two gates the one that opens last", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 2 }, rpm: { limit: 2 } });
  const [one, two] = [await grant(source), await grant(source)];
  expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm" });
  await free(source, one, { retryAfterMs: 5000 });
  expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm", retryAfterMs: 60_000 });
  await free(source, two, { retryAfterMs: 60_000 });
  expectError(await acquire(source), 429, "too_many_requests", { reason: "cooldown", retryAfterMs: 60_000 });
  await configure(source, { rpm: { limit: null } });
  clock.pass(59_999);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "cooldown", retryAfterMs: 1 });
});

test.each([
  ["rpm", 5000, 60_000],
  ["cooldown", 70_000, 70_000],
])("retryAfterMs is honest where two gates are closed and %s opens last", async (reason, cooldown, retryAfterMs) => {
  const clock = stopClock();
  const source = await createSource({ rpm: { limit: 1 } });
  await free(source, await grant(source), { retryAfterMs: cooldown });
  const { body } = await acquire(source);
  expect(body).toMatchObject({ reason, retryAfterMs });
  clock.pass(body.retryAfterMs - 1);
  expectError(await acquire(source), 429, "too_many_requests");
  clock.pass(1);
  await grant(source);
});

test("x-swarmvia-rpm headers tell the limit and what is left of it", async () => {
  const source = await createSource({ rpm: { limit: 2 } });
  const read = (answer: { headers: Headers }) => [
    answer.headers.get("x-swarmvia-rpm-limit"),
    answer.headers.get("x-swarmvia-rpm-remaining"),
  ];
  expect(read(await acquire(source))).toEqual(["2", "1"]);
  expect(read(await acquire(source))).toEqual(["2", "0"]);
  expect(read(await acquire(source))).toEqual(["2", "0"]);
  expect(read(await acquire(source, { waitMs: 30 }))).toEqual(["2", "0"]);
});
