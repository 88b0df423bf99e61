// POST …/lock/acquire where a slot is free.

import { beforeAll, expect, test } from "vitest";
import { acquire, createSource, expectError, expectHeld, free, grant, stopClock, type Source } from "./support";

let shared: Source;

beforeAll(async () => {
  shared = await createSource();
});

test("a grant names the slot and its deadlines, and the term starts at the grant", async () => {
  const clock = stopClock();
  const source = await createSource({ lease: { termMs: 20_000, renewIntervalMs: 4000, requestTimeoutMs: 50_000 } });
  clock.pass(1234);
  expect(await grant(source)).toEqual({
    slotId: expect.stringMatching(/^[A-Za-z0-9._~-]{22,128}$/),
    leaseDeadline: clock.now + 20_000,
    requestDeadline: clock.now + 50_000,
    termMs: 20_000,
    renewIntervalMs: 4000,
  });
});

test("a lease never reaches past the request deadline", async () => {
  const clock = stopClock();
  const source = await createSource({ lease: { termMs: 700, requestTimeoutMs: 700 } });
  const slot = await grant(source);
  expect(slot.leaseDeadline).toBe(clock.now + 700);
  expect(slot.requestDeadline).toBe(clock.now + 700);
});

test.each([
  ["no body", {}],
  ["no body, some content type", { headers: { "Content-Type": "text/html; charset=x" } }],
  ["white space", { body: " \n\t" }],
  ["an empty object", { body: "{}" }],
  ["an empty object as text", { body: "{}", headers: { "Content-Type": "text/plain" } }],
  ["null", { body: "null" }],
  ["null as waitMs", { body: '{"waitMs":null}' }],
  ["unknown fields", { body: '{"waitms":"x","else":[1,{"a":2}],"waitMs":0}' }],
  ["an integer with a fraction of nothing", { body: '{"waitMs":5000.0}' }],
  ["an integer in another spelling", { body: '{"waitMs":5e3}' }],
  ["a number past 2^53", { body: '{"waitMs":9007199254740993}' }],
  ["a number past any double", { body: `{"waitMs":1${"0".repeat(400)}}` }],
])("a body may be left out or hold more: %s", async (_, ask) => {
  const slot = await grant(shared, ask);
  await expectHeld(shared, 1);
  await free(shared, slot);
});

test.each([
  ["waitMs", '{"waitMs":"5"}'],
  ["waitMs", '{"waitMs":-1}'],
  ["waitMs", '{"waitMs":1.5}'],
  ["waitMs", '{"waitMs":true}'],
  ["waitMs", '{"waitMs":[]}'],
  ["waitMs", '{"waitMs":{}}'],
  [undefined, "{"],
  [undefined, "{}x"],
  [undefined, "[]"],
  [undefined, '"waitMs"'],
  [undefined, "5"],
  [undefined, "{'waitMs':5}"],
  [undefined, '{"waitMs":05}'],
  [undefined, '{"waitMs":NaN}'],
  [undefined, "\ufeff{}x"],
])("a malformed body is 400 naming %s, and takes no slot: %s", async (field, body) => {
  const answer = await acquire(shared, { body });
  expectError(answer, 400, "invalid_request");
  expect(answer.body.field).toBe(field);
  await expectHeld(shared, 0);
});

test("a body that is not UTF-8 is 400", async () => {
  expectError(await acquire(shared, { body: new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]) }), 400, "invalid_request");
});

test("slots are granted up to the limit, each with an id of its own", async () => {
  const source = await createSource({ concurrency: { limit: 40 } });
  const slots = await Promise.all(Array.from({ length: 40 }, () => grant(source)));
  expect(new Set(slots.map((slot) => slot.slotId)).size).toBe(40);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
  await expectHeld(source, 40);
});

test("sources do not share slots", async () => {
  const [one, other] = [await createSource({ concurrency: { limit: 1 } }), await createSource({ concurrency: { limit: 1 } })];
  await grant(one);
  await grant(other);
  expectError(await acquire(one), 429, "too_many_requests");
});

test("a slot that was freed is granted again, under another id", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const first = await grant(source);
  await free(source, first);
  const second = await grant(source);
  expect(second.slotId).not.toBe(first.slotId);
});

test("no field or header of a request moves a deadline", async () => {
  const clock = stopClock();
  const source = await createSource();
  const body = JSON.stringify({ now: 1, termMs: 600_000, leaseDeadline: clock.now + 1e9, requestDeadline: clock.now + 1e9 });
  const headers = { Date: "Thu, 01 Jan 2037 00:00:00 GMT", "X-Now": "1", "X-Swarmvia-Term-Ms": "600000" };
  const slot = await grant(source, { body, headers });
  expect(slot.leaseDeadline).toBe(clock.now + 30_000);
  expect(slot.requestDeadline).toBe(clock.now + 60_000);
});
