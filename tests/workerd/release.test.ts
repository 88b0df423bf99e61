// POST …/release: giving a slot back, once, with a report that may be wrong.

import { beforeAll, expect, test } from "vitest";
import {
  acquire,
  admin,
  createSource,
  expectError,
  expectHeld,
  free,
  grant,
  mintKey,
  release,
  renew,
  stateOf,
  stopClock,
  type Source,
} from "./support";

let shared: Source;

beforeAll(async () => {
  shared = await createSource();
});

test("a release frees the slot once, and says so", async () => {
  const source = await createSource();
  const slot = await grant(source);
  const answers = [await release(source, slot), await release(source, slot), await release(source, slot)];
  expect(answers.map(({ status, body }) => ({ status, ...body }))).toEqual([
    { status: 200, released: true },
    { status: 200, released: false },
    { status: 200, released: false },
  ]);
});

test("a double release does not lift the count above the limit", async () => {
  const source = await createSource({ concurrency: { limit: 2 } });
  const slot = await grant(source);
  await grant(source);
  await Promise.all([release(source, slot), release(source, slot), release(source, slot)]);
  expect(await stateOf(source)).toMatchObject({ inUse: 1, remainingSlots: 1 });
  await grant(source);
  expectError(await acquire(source), 429, "too_many_requests");
});

test("a slot that never existed, or can't, is 200 with false", async () => {
  const source = await createSource();
  const { slotId } = await grant(source);
  for (const wrong of ["x", "0", "A".repeat(slotId.length), "z".repeat(4000), "%00", slotId.slice(0, -1), `${slotId}A`]) {
    const { status, body } = await release(source, { slotId: wrong }, { status: 429, retryAfterMs: 60_000 });
    expect({ status, body }).toEqual({ status: 200, body: { released: false } });
  }
  expect(await stateOf(source)).toMatchObject({ inUse: 1, cooldownUntil: null });
});

test("an expired lease was already gone", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source);
  clock.pass(30_000);
  expect((await release(source, slot)).body).toEqual({ released: false });
});

test("a stale holder can't release what is now someone else's", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 1 } });
  const stale = await grant(source);
  clock.pass(30_000);
  const current = await grant(source);
  expect((await release(source, stale)).body).toEqual({ released: false });
  expect((await renew(source, current)).status).toBe(200);
  expectError(await acquire(source), 429, "too_many_requests");
});

test("any live key of the source may release", async () => {
  const source = await createSource();
  const slot = await grant(source);
  expect((await release(source, slot, undefined, { key: (await mintKey(source)).key })).body).toEqual({ released: true });
});

test.each([
  ["status", { status: 99 }],
  ["status", { status: 600 }],
  ["status", { status: "200" }],
  ["status", { status: 200.5 }],
  ["status", { status: true }],
  ["throttled", { throttled: -1 }],
  ["throttled", { throttled: 0.5 }],
  ["throttled", { throttled: "1" }],
  ["retryAfterMs", { retryAfterMs: -1 }],
  ["retryAfterMs", { retryAfterMs: 1.5 }],
  ["retryAfterMs", { retryAfterMs: "1000" }],
  ["rate", { rate: [] }],
  ["rate", { rate: 5 }],
  ["rate.limit", { rate: { limit: "60" } }],
  ["rate.remaining", { rate: { remaining: -1 } }],
  ["rate.resetMs", { rate: { resetMs: {} } }],
  ["rate.tokenLimit", { rate: { tokenLimit: false } }],
  ["rate.tokenRemaining", { rate: { tokenRemaining: [1] } }],
  ["rate.tokenResetMs", { rate: { tokenResetMs: "" } }],
  ["rate.windowMs", { rate: { windowMs: -0.5 } }],
  ["rate.concurrencyLimit", { rate: { concurrencyLimit: "x" } }],
  ["rate.retryAfterMs", { rate: { retryAfterMs: "x" } }],
  ["headers", { headers: "retry-after: 5" }],
  ["headers", { headers: [["retry-after", "5"]] }],
  ["headers.retry-after", { headers: { "retry-after": true } }],
  ["headers.retry-after", { headers: { "retry-after": { a: 1 } } }],
  ["headers.retry-after", { headers: { "retry-after": [["5"]] } }],
  ["headers.retry-after", { rate: { limit: 5 }, headers: { "retry-after": [null] } }],
])("a malformed report is 400 naming %s, and the slot stays as it was: %j", async (field, report) => {
  const seen = async () => [(await admin("GET", `/pools/${shared.name}/slots`)).body, (await stateOf(shared)).cooldownUntil];
  const slot = await grant(shared);
  const before = await seen();
  expectError(await release(shared, slot, report), 400, "invalid_request", { field });
  expect(await seen()).toEqual(before);
  await free(shared, slot);
});

test.each(["{", "[]", '"x"', "7", "{}{}", '{"status":0200}'])(
  "a body that is no JSON object is 400, and the slot stays: %s",
  async (body) => {
    const slot = await grant(shared);
    expectError(await release(shared, slot, undefined, { body }), 400, "invalid_request");
    await free(shared, slot);
  },
);

test("a malformed report is 400 also where the slot is long gone", async () => {
  expectError(await release(shared, { slotId: "gone" }, { status: "200" }), 400, "invalid_request", { field: "status" });
});

test.each([
  "",
  "{}",
  "null",
  '{"status":null,"throttled":null,"retryAfterMs":null,"rate":null,"headers":null}',
  '{"status":200.0,"throttled":0,"retryAfterMs":0}',
  '{"status":100}',
  '{"status":599}',
  '{"status":200,"throttled":9007199254740993,"retryAfterMs":1e300}',
  '{"unknown":{"a":[1]},"rate":{"unknown":"x"}}',
  '{"rate":{"limit":60,"remaining":0.5,"resetMs":1e300,"tokenLimit":null}}',
  '{"headers":{"Retry-After":"garbage","X-RateLimit-Remaining":"NaN","a":5,"b":["c",-1.5],"d":[]}}',
  '{"rate":{"remaining":5},"headers":{"retry-after":"5"}}',
])("a report may leave out or add anything: %s", async (body) => {
  const source = await createSource();
  const slot = await grant(source);
  expect((await release(source, slot, undefined, { body })).body).toEqual({ released: true });
});

test("a report counts once, with the release that freed the slot", async () => {
  const source = await createSource();
  const slot = await grant(source);
  await free(source, slot);
  expect((await release(source, slot, { status: 429, retryAfterMs: 60_000 })).body).toEqual({ released: false });
  expect((await stateOf(source)).cooldownUntil).toBeNull();
  await grant(source);
});
