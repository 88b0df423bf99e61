// GET and DELETE …/slots: who holds what, and taking a slot back by force.

import { expect, test } from "vitest";
import {
  acquire,
  admin,
  createSource,
  expectError,
  expectHeld,
  free,
  grant,
  granted,
  isOpen,
  mintKey,
  release,
  renew,
  stopClock,
  waiter,
  type Source,
} from "./support";

const slotsOf = async (source: Source, query = "") => (await admin("GET", `/pools/${source.name}/slots${query}`)).body;
const force = (source: Source, ref: string) => admin("DELETE", `/pools/${source.name}/slots/${ref}`);

test("the list says who holds what, since when and until when", async () => {
  const clock = stopClock();
  const source = await createSource();
  const other = await mintKey(source, { name: "worker-7" });
  const first = await grant(source);
  clock.pass(2000);
  const second = await grant(source, { key: other.key });
  clock.pass(1000);
  await renew(source, first);
  const ref = expect.stringMatching(/^(0|[1-9][0-9]{0,15})$/);
  expect(await slotsOf(source)).toEqual({
    slots: [
      { ref, keyId: source.keyId, keyName: null, since: clock.now - 3000, leaseDeadline: clock.now + 30_000, requestDeadline: first.requestDeadline },
      { ref, keyId: other.keyId, keyName: "worker-7", since: clock.now - 1000, leaseDeadline: second.leaseDeadline, requestDeadline: second.requestDeadline },
    ],
    next: null,
  });
});

test("the slot id, which is a secret, is never shown, not even in part", async () => {
  const source = await createSource();
  const { slotId } = await grant(source);
  const text = JSON.stringify([await slotsOf(source), (await admin("GET", `/pools/${source.name}`)).body]);
  for (let at = 0; at + 8 <= slotId.length; at += 1) {
    const part = slotId.slice(at, at + 8);
    if (!/^A+$/.test(part)) expect(text).not.toContain(part);
  }
});

test("a ref is not a slot id: it neither renews nor releases", async () => {
  const source = await createSource();
  await grant(source);
  const [{ ref }] = (await slotsOf(source)).slots;
  expectError(await renew(source, { slotId: ref }), 404, "not_found");
  expect((await release(source, { slotId: ref })).body).toEqual({ released: false });
  await expectHeld(source, 1);
});

test("released and expired slots are not listed", async () => {
  const clock = stopClock();
  const source = await createSource();
  expect(await slotsOf(source)).toEqual({ slots: [], next: null });
  await free(source, await grant(source));
  await grant(source);
  clock.pass(30_000);
  expect(await slotsOf(source)).toEqual({ slots: [], next: null });
});

test("the list comes page by page, each slot once", async () => {
  const source = await createSource();
  for (let i = 0; i < 7; i += 1) await grant(source);
  const all = (await slotsOf(source)).slots.map((slot: any) => slot.ref);
  const seen: string[] = [];
  let query = "?limit=3";
  for (let pages = 0; query && pages < 5; pages += 1) {
    const { slots, next } = await slotsOf(source, query);
    seen.push(...slots.map((slot: any) => slot.ref));
    query = next && `?limit=3&after=${next}`;
  }
  expect(seen).toEqual(all);
  expect(new Set(seen).size).toBe(7);
});

test("a forced release frees the slot at once, and its holder has lost it", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const [{ ref }] = (await slotsOf(source)).slots;
  const { status, body } = await force(source, ref);
  expect({ status, body }).toEqual({ status: 200, body: { released: true } });
  await expectHeld(source, 0);
  expectError(await renew(source, slot), 404, "not_found");
  expect((await release(source, slot)).body).toEqual({ released: false });
  await grant(source);
});

test("a slot freed by force goes to the caller who waits longest", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  const [first, second] = [await waiter(source), await waiter(source)];
  await force(source, (await slotsOf(source)).slots[0].ref);
  granted(await first.answer);
  expect(await isOpen(second.answer, 50)).toBe(true);
});

test("it frees that slot and no other", async () => {
  const source = await createSource();
  const slots = [await grant(source), await grant(source), await grant(source)];
  await force(source, (await slotsOf(source)).slots[1].ref);
  expect((await Promise.all(slots.map((slot) => renew(source, slot)))).map((answer) => answer.status)).toEqual([200, 404, 200]);
});

test("a ref that names no slot in use is 404, so a second DELETE is too", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source);
  const [{ ref }] = (await slotsOf(source)).slots;
  for (const wrong of ["999999", "x", "-1", "1.0", `0${ref}`, "9".repeat(30), "%00", slot.slotId])
    expectError(await force(source, wrong), 404, "not_found");
  await expectHeld(source, 1);
  expect((await force(source, ref)).status).toBe(200);
  expectError(await force(source, ref), 404, "not_found");
  await grant(source);
  const later = (await slotsOf(source)).slots[0].ref;
  clock.pass(30_000);
  expectError(await force(source, later), 404, "not_found");
});

test("a ref is never used again for another slot", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const refs = new Set<string>();
  for (let i = 0; i < 5; i += 1) {
    const slot = await grant(source);
    expect((await acquire(source)).status).toBe(429);
    refs.add((await slotsOf(source)).slots[0].ref);
    await free(source, slot);
  }
  expect(refs.size).toBe(5);
});
