// POST …/renew: how long a slot may be held.

import { expect, test } from "vitest";
import {
  acquire,
  configure,
  createSource,
  expectError,
  expectHeld,
  free,
  grant,
  lock,
  mintKey,
  release,
  renew,
  stateOf,
  stopClock,
} from "./support";

test("a renewal moves the lease to one term from now", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source);
  clock.pass(12_345);
  const answer = await renew(source, slot);
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ leaseDeadline: clock.now + 30_000 });
});

test("a renewal that answered holds for its whole term", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  clock.pass(29_999);
  expect((await renew(source, slot)).status).toBe(200);
  clock.pass(29_999);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
  clock.pass(1);
  await grant(source);
});

test("a renewal reaches no further than the request deadline, then it is 409 capped and the slot stays held until then", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 1 }, lease: { termMs: 1000, requestTimeoutMs: 1500 } });
  const slot = await grant(source);
  clock.pass(900);
  expect((await renew(source, slot)).body).toEqual({ leaseDeadline: slot.requestDeadline });
  clock.pass(599);
  expectError(await renew(source, slot), 409, "capped");
  expectError(await acquire(source), 429, "too_many_requests");
  clock.pass(1);
  expectError(await renew(source, slot), 404, "not_found");
  await grant(source);
});

test("a capped slot can be released", async () => {
  const source = await createSource({ lease: { termMs: 1000, requestTimeoutMs: 1000 } });
  const slot = await grant(source);
  expectError(await renew(source, slot), 409, "capped");
  await free(source, slot);
});

test("a renewal never moves the lease back, whatever the term is by now", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source);
  await configure(source, { lease: { termMs: 500 } });
  clock.pass(10);
  expect((await renew(source, slot)).body).toEqual({ leaseDeadline: slot.leaseDeadline });
  clock.pass(29_900);
  expect((await renew(source, slot)).body).toEqual({ leaseDeadline: clock.now + 500 });
});

test("an expired lease is never revived, even if nobody took the slot", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source);
  clock.pass(30_000);
  expectError(await renew(source, slot), 404, "not_found");
  expectError(await renew(source, slot), 404, "not_found");
  await expectHeld(source, 0);
});

test("a slot that was released is 404", async () => {
  const source = await createSource();
  const slot = await grant(source);
  await free(source, slot);
  expectError(await renew(source, slot), 404, "not_found");
});

test("a slot id that never existed, or can't, is 404", async () => {
  const source = await createSource();
  const { slotId } = await grant(source);
  const swapped = slotId.slice(0, -3) + [...slotId.slice(-3)].map((c) => (c === "Q" ? "g" : "Q")).join("");
  for (const wrong of [
    "x",
    "0",
    "A".repeat(slotId.length),
    "z".repeat(4000),
    "a.b",
    "%00",
    "%2e",
    slotId.slice(0, -1),
    `${slotId}A`,
    swapped,
  ]) {
    expectError(await renew(source, { slotId: wrong }), 404, "not_found");
  }
  await expectHeld(source, 1);
});

test("the slot of another source is 404, and its holder keeps it", async () => {
  const [one, other] = [await createSource(), await createSource()];
  const slot = await grant(one);
  await grant(other);
  expectError(await renew(other, slot), 404, "not_found");
  expect((await release(other, slot)).body).toEqual({ released: false });
  expect((await renew(one, slot)).status).toBe(200);
});

test("a body is ignored", async () => {
  const source = await createSource();
  const slot = await grant(source);
  for (const body of ["{", "not json", '{"termMs":1}', "\u0000"]) expect((await renew(source, slot, { body })).status).toBe(200);
});

test("any live key of the source may renew", async () => {
  const source = await createSource();
  const slot = await grant(source);
  expect((await renew(source, slot, { key: (await mintKey(source)).key })).status).toBe(200);
});

test("hundreds of renewals at once lose nothing", async () => {
  const source = await createSource({ concurrency: { limit: 3 } });
  const slots = [await grant(source), await grant(source), await grant(source)];
  const answers = await Promise.all(Array.from({ length: 300 }, (_, i) => renew(source, slots[i % 3])));
  expect(answers.map((answer) => answer.status)).toEqual(Array(300).fill(200));
  await expectHeld(source, 3);
  for (const slot of slots) await free(source, slot);
});

test("renew and release at once end in a free slot", async () => {
  const source = await createSource();
  for (let i = 0; i < 10; i += 1) {
    const slot = await grant(source);
    const [renewed, released] = await Promise.all([renew(source, slot), release(source, slot)]);
    expect([200, 404]).toContain(renewed.status);
    expect(released.body).toEqual({ released: true });
    expectError(await renew(source, slot), 404, "not_found");
  }
  expect(await stateOf(source)).toMatchObject({ inUse: 0, remainingSlots: 10 });
});

test("a refused renewal changes nothing", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source);
  clock.pass(29_000);
  expectError(await renew(source, slot, { key: "sv_at_wrong" }), 401, "unauthorized");
  expectError(await lock(source, `${slot.slotId}/renew`, { body: "x".repeat(65_537) }), 413, "payload_too_large");
  clock.pass(999);
  await expectHeld(source, 1);
  clock.pass(1);
  await expectHeld(source, 0);
});
