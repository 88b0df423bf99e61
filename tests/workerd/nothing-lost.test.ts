// Crowds: however calls are interleaved, no slot is lost or doubled, and everyone is answered.

import { abortAllDurableObjects } from "cloudflare:test";
import { expect, test } from "vitest";
import {
  acquire,
  configure,
  createSource,
  expectError,
  free,
  grant,
  granted,
  release,
  renew,
  sleep,
  stateOf,
  type Source,
} from "./support";

/** Counts who holds a slot now, as the callers see it. */
function tally() {
  let held = 0;
  let most = 0;
  return {
    async hold(ms: number) {
      held += 1;
      most = Math.max(most, held);
      await sleep(ms);
      held -= 1;
    },
    get most() {
      return most;
    },
  };
}

const expectIdle = async (source: Source, limit: number) =>
  expect(await stateOf(source)).toMatchObject({ inUse: 0, queueDepth: 0, remainingSlots: limit });

test("of a fail-fast burst exactly as many are granted as there are slots", async () => {
  const source = await createSource({ concurrency: { limit: 5 } });
  const answers = await Promise.all(Array.from({ length: 80 }, () => acquire(source)));
  expect(answers.filter((answer) => answer.status === 200)).toHaveLength(5);
  for (const answer of answers.filter((answer) => answer.status !== 200))
    expectError(answer, 429, "too_many_requests", { reason: "no_free_slot" });
});

test("a crowd of 200 is served whole, never more at once than the limit", async () => {
  const source = await createSource({ concurrency: { limit: 7 }, queue: { maxDepth: 200 } });
  const seen = tally();
  const ids = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const slot = await grant(source, { waitMs: 30_000 });
      await seen.hold(2);
      await free(source, slot);
      return slot.slotId;
    }),
  );
  expect(seen.most).toBeLessThanOrEqual(7);
  expect(new Set(ids).size).toBe(200);
  await expectIdle(source, 7);
});

test("a steady stream of newcomers does not starve who came first", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const first = acquire(source, { waitMs: 20_000 });
  await sleep(30);
  const served: number[] = [];
  const stream = Array.from({ length: 40 }, async (_, i) => {
    await sleep(i * 5);
    const answer = await acquire(source, i % 2 ? { waitMs: 20_000 } : {});
    if (answer.status !== 200) return;
    served.push(i);
    await free(source, answer.body);
  });
  await sleep(50);
  await free(source, slot);
  const mine = granted(await first);
  expect(served).toEqual([]);
  await free(source, mine);
  await Promise.all(stream);
  await expectIdle(source, 1);
});

test("holders who vanish cost a term each, and no more", async () => {
  const source = await createSource({ concurrency: { limit: 4 }, lease: { termMs: 500 } });
  const startedAt = Date.now();
  await Promise.all(Array.from({ length: 12 }, () => grant(source, { waitMs: 10_000 })));
  const tookMs = Date.now() - startedAt;
  expect(tookMs).toBeGreaterThanOrEqual(1000);
  expect(tookMs).toBeLessThan(3000);
  await sleep(700);
  await expectIdle(source, 4);
});

test("a limit that moves up and down under load is never passed", async () => {
  const source = await createSource({ concurrency: { limit: 6 }, queue: { maxDepth: 200 } });
  let isDone = false;
  const seen = tally();
  const mover = (async () => {
    for (let i = 0; !isDone; i += 1) {
      expect((await configure(source, { concurrency: { limit: [2, 6, 1, 4][i % 4] }, queue: { maxDepth: 200 } })).status).toBe(200);
      const { inUse, effectiveLimit } = await stateOf(source);
      expect(inUse).toBeLessThanOrEqual(Math.max(6, effectiveLimit));
      await sleep(10);
    }
  })();
  await Promise.all(
    Array.from({ length: 80 }, async () => {
      const slot = await grant(source, { waitMs: 30_000 });
      await seen.hold(3);
      await free(source, slot);
    }),
  );
  isDone = true;
  await mover;
  expect(seen.most).toBeLessThanOrEqual(6);
  await configure(source, { concurrency: { limit: 3 } });
  await expectIdle(source, 3);
});

test("acquires, renewals, double releases, repeats and time-outs at once lose nothing", async () => {
  const source = await createSource({ concurrency: { limit: 3 }, queue: { maxDepth: 200 } });
  const seen = tally();
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      await sleep((i * 7) % 50);
      const answer = await acquire(source, { waitMs: [0, 40, 20_000][i % 3], idempotencyKey: `job-${i}` });
      if (answer.status !== 200) return answer.status;
      const again = await acquire(source, { idempotencyKey: `job-${i}` });
      expect(granted(again).slotId).toBe(answer.body.slotId);
      await Promise.all([seen.hold(2), renew(source, answer.body)]);
      const answers = await Promise.all([release(source, answer.body), release(source, answer.body)]);
      expect(answers.map(({ body }) => body.released).sort()).toEqual([false, true]);
      return 200;
    }),
  );
  expect(seen.most).toBeLessThanOrEqual(3);
  for (const status of outcomes) expect([200, 429, 504]).toContain(status);
  expect(outcomes.filter((status, i) => i % 3 === 2 && status !== 200)).toEqual([]);
  await expectIdle(source, 3);
});

test("resets under load lose nobody and grant nothing twice", async () => {
  const source = await createSource({ concurrency: { limit: 3 }, queue: { maxDepth: 100 }, lease: { termMs: 1000 } });
  let isDone = false;
  const seen = tally();
  const resets = (async () => {
    for (let i = 0; i < 4 && !isDone; i += 1) {
      await sleep(120);
      await abortAllDurableObjects();
    }
  })();
  const statuses = await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      const answer = await acquire(source, { waitMs: 15_000, idempotencyKey: `job-${i}` });
      if (answer.status !== 200) return answer.status;
      await seen.hold(20);
      const { status } = await release(source, answer.body);
      return status;
    }),
  );
  isDone = true;
  await resets;
  expect(seen.most).toBeLessThanOrEqual(3);
  expect(statuses).toEqual(Array(40).fill(200));
  await sleep(1100);
  await expectIdle(source, 3);
});
