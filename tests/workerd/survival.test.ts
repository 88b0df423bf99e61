// An object may be evicted or reset at any point, and its alarm may ring late, twice or never.

import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, test } from "vitest";
import {
  acquire,
  admin,
  createSource,
  expectError,
  expectHeld,
  free,
  grant,
  mintKey,
  objectOf,
  release,
  renew,
  stateOf,
  stopClock,
  type Source,
} from "./support";

const slotsOf = async (source: Source) => (await admin("GET", `/pools/${source.name}/slots`)).body.slots;
const alarmOf = (source: Source) => runInDurableObject(objectOf(source), (_, state) => state.storage.getAlarm());

describe.each([
  ["evicted", (source: Source) => evictDurableObject(objectOf(source))],
  ["reset", () => abortAllDurableObjects()],
])("an object that is %s", (_, interrupt) => {
  test("keeps its slots and their deadlines, and grants none twice", async () => {
    const clock = stopClock();
    const source = await createSource({ concurrency: { limit: 2 } });
    const [kept, abandoned] = [await grant(source, { idempotencyKey: "kept" }), await grant(source)];
    clock.pass(10_000);
    const { leaseDeadline } = (await renew(source, kept)).body;
    const before = await slotsOf(source);
    await interrupt(source);
    expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
    expect(await slotsOf(source)).toEqual(before);
    const again = await acquire(source, { idempotencyKey: "kept" });
    expect(again.body).toEqual({ ...kept, leaseDeadline });
    clock.pass(20_000);
    expectError(await renew(source, abandoned), 404, "not_found");
    expect((await renew(source, kept)).body).toEqual({ leaseDeadline: clock.now + 30_000 });
    await grant(source);
  });

  test("knows what was released, and by whom it is held now", async () => {
    const clock = stopClock();
    const source = await createSource({ concurrency: { limit: 1 } });
    const first = await grant(source);
    await free(source, first);
    const second = await grant(source);
    await interrupt(source);
    clock.pass(16_000);
    expect((await release(source, first)).body).toEqual({ released: false });
    expectError(await renew(source, first), 404, "not_found");
    expect((await release(source, second)).body).toEqual({ released: true });
    await interrupt(source);
    await expectHeld(source, 0);
  });

  test("keeps the RPM window", async () => {
    const clock = stopClock();
    const source = await createSource({ rpm: { limit: 3 } });
    for (let i = 0; i < 3; i += 1) {
      await free(source, await grant(source));
      clock.pass(1000);
    }
    await interrupt(source);
    expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm", retryAfterMs: 57_000 });
    clock.pass(57_000);
    await grant(source);
    expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm", retryAfterMs: 1000 });
  });

  test("keeps the cool-down", async () => {
    const clock = stopClock();
    const source = await createSource();
    await free(source, await grant(source), { status: 429, retryAfterMs: 8000 });
    await interrupt(source);
    expectError(await acquire(source), 429, "too_many_requests", { reason: "cooldown", retryAfterMs: 8000 });
    expect((await stateOf(source)).cooldownUntil).toBe(clock.now + 8000);
    clock.pass(8000);
    await grant(source);
  });

  test("keeps its settings, their ETag, and who may come in", async () => {
    const source = await createSource({ concurrency: { limit: 7 }, access: { swarmvia: false } });
    const gone = await mintKey(source);
    await admin("DELETE", `/pools/${source.name}/keys/${gone.keyId}`);
    const read = async () => {
      const [{ body, headers }, keys] = [await admin("GET", `/pools/${source.name}`), await admin("GET", `/pools/${source.name}/keys`)];
      return [body.settings, body.version, headers.get("ETag"), keys.body];
    };
    const before = await read();
    await interrupt(source);
    expect(await read()).toEqual(before);
    expectError(await acquire(source, { key: gone.key }), 401, "unauthorized");
    await grant(source);
  });

  test("gives no ref twice", async () => {
    const clock = stopClock();
    const source = await createSource();
    const refs = new Set<string>();
    for (let i = 0; i < 4; i += 1) {
      // So that it is soon let go: until then it waits to tell its counts.
      clock.pass(16_000);
      await grant(source);
      for (const { ref } of await slotsOf(source)) refs.add(ref);
      await interrupt(source);
    }
    expect(refs.size).toBe(4);
  });

  test("stays deleted", async () => {
    const source = await createSource();
    await grant(source);
    await admin("DELETE", `/pools/${source.name}`);
    await interrupt(source);
    expectError(await acquire(source), 401, "unauthorized");
    expectError(await admin("GET", `/pools/${source.name}`), 404, "not_found");
  });

  test("does not move a deadline where the clock stepped back meanwhile", async () => {
    const clock = stopClock();
    const source = await createSource({ concurrency: { limit: 2 }, rpm: { limit: 2 } });
    const first = await grant(source);
    await interrupt(source);
    clock.pass(-5000);
    const second = await grant(source);
    expect(second.leaseDeadline).toBeGreaterThanOrEqual(first.leaseDeadline);
    expect((await renew(source, first)).body.leaseDeadline).toBe(first.leaseDeadline);
    clock.pass(5000 + 59_999);
    expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm" });
  });
});

describe("an alarm", () => {
  test("that rings early, or twice, takes nothing away, and stands again while a slot is held", async () => {
    const source = await createSource();
    const slot = await grant(source);
    for (let i = 0; i < 3; i += 1) {
      expect(await runDurableObjectAlarm(objectOf(source))).toBe(true);
      expect(await alarmOf(source)).toBeGreaterThan(Date.now());
      expect(await alarmOf(source)).toBeLessThanOrEqual(slot.leaseDeadline + 1);
    }
    await expectHeld(source, 1);
    expect((await renew(source, slot)).status).toBe(200);
  });

  test("that rings after a lease ended finds the next one", async () => {
    const clock = stopClock();
    const source = await createSource();
    await grant(source);
    clock.pass(10_000);
    const later = await grant(source);
    clock.pass(20_000);
    await runDurableObjectAlarm(objectOf(source));
    await expectHeld(source, 1);
    expect(await alarmOf(source)).toBe(later.leaseDeadline);
  });

  test("that never rings changes nothing: the next call takes ended leases back", async () => {
    const clock = stopClock();
    const source = await createSource({ concurrency: { limit: 1 } });
    const slot = await grant(source);
    await runInDurableObject(objectOf(source), (_, state) => state.storage.deleteAlarm());
    clock.pass(29_999);
    expectError(await acquire(source), 429, "too_many_requests");
    clock.pass(1);
    await grant(source);
    expectError(await renew(source, slot), 404, "not_found");
  });

  test("stands by the first lease's end, so that an abandoned slot comes free without traffic", async () => {
    const source = await createSource();
    expect(await alarmOf(source)).toBeNull();
    const slot = await grant(source);
    await grant(source);
    expect(await alarmOf(source)).toBeLessThanOrEqual(slot.leaseDeadline + 1);
    await evictDurableObject(objectOf(source));
    expect(await alarmOf(source)).toBeLessThanOrEqual(slot.leaseDeadline + 1);
  });

  test("on an object of a source that is gone does nothing", async () => {
    const source = await createSource();
    await grant(source);
    await admin("DELETE", `/pools/${source.name}`);
    await runInDurableObject(objectOf(source), (_, state) => state.storage.setAlarm(Date.now() + 60_000));
    expect(await runDurableObjectAlarm(objectOf(source))).toBe(true);
    expectError(await admin("GET", `/pools/${source.name}`), 404, "not_found");
  });
});
