// Retry-After: whole seconds, honest where the moment is known, spread so that callers don't come back as one.

import { expect, test } from "vitest";
import { acquire, createSource, expectError, free, grant, stopClock, waiter, type Ask, type Source } from "./support";

/** The seconds of many refusals with the same reason, as a sorted set. */
async function seconds(source: Source, reason: string, ask: Ask = {}, tries = 30): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: tries }, () => acquire(source, ask)));
  const seen = answers.map((answer) => {
    expectError(answer, 429, "too_many_requests", { reason });
    const value = answer.headers.get("Retry-After");
    expect(value).toMatch(/^[1-9]\d*$/);
    return Number(value);
  });
  return [...new Set(seen)].sort((a, b) => a - b);
}

const within = (seen: number[], least: number, most: number) => {
  expect(seen[0]).toBeGreaterThanOrEqual(least);
  expect(seen.at(-1)).toBeLessThanOrEqual(most);
};

test("for no_free_slot it is from 1 to 5 s while leases last, and not the same for everyone", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  const seen = await seconds(source, "no_free_slot");
  within(seen, 1, 5);
  expect(seen.length).toBeGreaterThanOrEqual(3);
});

test("for no_free_slot it is no longer than the earliest lease lasts", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  clock.pass(27_500);
  within(await seconds(source, "no_free_slot"), 1, 3);
  clock.pass(2499);
  expect(await seconds(source, "no_free_slot")).toEqual([1]);
});

test("for queue_full it is from 1 to 5 s, and not the same for everyone", async () => {
  const source = await createSource({ concurrency: { limit: 1 }, queue: { maxDepth: 1 } });
  await grant(source);
  await waiter(source);
  const seen = await seconds(source, "queue_full", { waitMs: 5000 });
  within(seen, 1, 5);
  expect(seen.length).toBeGreaterThanOrEqual(3);
});

test.each([
  [1, 1, 3],
  [1500, 2, 4],
  [8000, 8, 10],
  [40_001, 41, 52],
  [600_000, 600, 750],
])(
  "for a cool-down of %d ms it is the exact wait rounded up, plus up to the larger of 2 s and 25 %%",
  async (retryAfterMs, least, most) => {
    stopClock();
    const source = await createSource();
    await free(source, await grant(source), { retryAfterMs });
    const seen = await seconds(source, "cooldown");
    within(seen, least, most);
    expect(seen.length).toBeGreaterThanOrEqual(2);
  },
);

test("for rpm it is the exact wait rounded up, plus up to the larger of 2 s and 25 %", async () => {
  const clock = stopClock();
  const source = await createSource({ rpm: { limit: 1 } });
  await free(source, await grant(source));
  within(await seconds(source, "rpm"), 60, 75);
  clock.pass(58_700);
  within(await seconds(source, "rpm"), 2, 4);
});

test("retryAfterMs is in the body where the moment is known, and nowhere else", async () => {
  stopClock();
  const source = await createSource({ concurrency: { limit: 2 } });
  const slot = await grant(source);
  await grant(source);
  expect((await acquire(source)).body).not.toHaveProperty("retryAfterMs");
  await free(source, slot, { retryAfterMs: 1234 });
  expect((await acquire(source)).body.retryAfterMs).toBe(1234);
});

test("a grant carries none, and a time-out does as a refusal", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  expect((await acquire(source)).headers.get("Retry-After")).toBeNull();
  const answers = await Promise.all(Array.from({ length: 30 }, () => acquire(source, { waitMs: 20 })));
  expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(504));
  const seconds = answers.map((answer) => Number(answer.headers.get("Retry-After")));
  expect(seconds.every((wait) => wait >= 1 && wait <= 5)).toBe(true);
  expect(new Set(seconds).size).toBeGreaterThan(1);
});
