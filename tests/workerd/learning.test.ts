// What releases report is learned, kept, shown, explained and forgotten.

import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { acquire, admin, createSource, expectError, free, grant, objectOf, stateOf, stopClock, type Source } from "./support";

const ADAPTIVE = { concurrency: { limit: 10, min: 2, max: 20, adaptive: true }, rpm: { adaptive: true } };

const explain = (source: { name: string }, report: unknown) => admin("POST", `/pools/${source.name}/explain`, report);
const reset = (source: { name: string }) => admin("POST", `/pools/${source.name}/reset`);
const rowOf = (source: Source): Promise<any> =>
  runInDurableObject(objectOf(source), (_, state) => state.storage.sql.exec("SELECT * FROM source").one());

test("a stated concurrency limit is in force at once, for callers and operators", async () => {
  const source = await createSource(ADAPTIVE);
  await free(source, await grant(source), { status: 200, rate: { concurrencyLimit: 4 } });
  const answer = await acquire(source);
  expect(answer.headers.get("x-swarmvia-effective-limit")).toBe("4");
  expect(answer.headers.get("x-swarmvia-remaining-slots")).toBe("3");
  expect(await stateOf(source)).toMatchObject({ effectiveLimit: 4, learned: { concurrency: { limit: 4 } } });
});

test("what was learned names the report that taught it, and when", async () => {
  const clock = stopClock();
  const source = await createSource(ADAPTIVE);
  await free(source, await grant(source));
  const slot = await grant(source);
  clock.pass(500);
  await free(source, slot, { status: 200, rate: { limit: 300, remaining: 250, resetMs: 30_000, windowMs: 60_000 } });
  const { learned } = await stateOf(source);
  expect(learned).toEqual({
    concurrency: { limit: 10, throttledAt: null, ref: null, at: null },
    rate: {
      stated: { limit: 300, windowMs: 60_000 },
      inferred: null,
      throttledSince: null,
      resetsAt: clock.now + 30_000,
      ref: "2",
      at: clock.now,
    },
  });
  const entries = (await admin("GET", `/pools/${source.name}/log`)).body.entries;
  expect(entries.find((entry: any) => entry.ref === learned.rate.ref).outcome).toBe("granted");
});

test("the state shows the last report that said anything, as it was read", async () => {
  const clock = stopClock();
  const source = await createSource();
  expect((await stateOf(source)).lastReport).toBeNull();
  const slot = await grant(source);
  await free(source, slot, { status: 429, headers: { "Retry-After": "7", "X-RateLimit-Limit": "60" } });
  await admin("POST", `/pools/${source.name}/reset`);
  await free(source, await grant(source));
  const { lastReport, learned } = await stateOf(source);
  expect(lastReport).toMatchObject({ ref: "1", at: clock.now, signal: "throttled", read: { status: 429, retryAfterMs: 7000, limit: 60, remaining: null } });
  expect(learned).toEqual({ concurrency: null, rate: null });
});

test("a stated window closes and opens as it said, and the headers show it", async () => {
  const clock = stopClock();
  const source = await createSource(ADAPTIVE);
  await free(source, await grant(source), { status: 200, rate: { limit: 3, windowMs: 1000 } });
  await grant(source);
  const last = await acquire(source);
  expect(last.status).toBe(200);
  expect(last.headers.get("x-swarmvia-rpm-limit")).toBe("180");
  expect(last.headers.get("x-swarmvia-rpm-remaining")).toBe("0");
  expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm", retryAfterMs: 1000 });
  clock.pass(1000);
  await grant(source);
});

test("what was learned survives eviction", async () => {
  stopClock();
  const source = await createSource(ADAPTIVE);
  const report = { status: 200, rate: { concurrencyLimit: 4, limit: 300, windowMs: 30_000 } };
  await free(source, await grant(source), report);
  const { lastReport, ...before } = await stateOf(source);
  expect(lastReport).not.toBeNull();
  await evictDurableObject(objectOf(source));
  expect(await stateOf(source)).toEqual({ ...before, lastReport: null });
});

test("reset forgets it, opens a cool-down, and is in the control log", async () => {
  const source = await createSource(ADAPTIVE);
  const report = { status: 429, retryAfterMs: 60_000, rate: { concurrencyLimit: 4, limit: 300, windowMs: 30_000 } };
  await free(source, await grant(source), report);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "cooldown" });
  expect((await reset(source)).body).toEqual({ reset: true });
  const state = await stateOf(source);
  expect(state).toMatchObject({ effectiveLimit: 10, rpm: null, cooldownUntil: null });
  expect(state.learned.rate.stated).toBeNull();
  await evictDurableObject(objectOf(source));
  expect(await stateOf(source)).toMatchObject({ effectiveLimit: 10, rpm: null, cooldownUntil: null });
  await grant(source);
  const audit = (await admin("GET", `/pools/${source.name}/audit`)).body.entries;
  expect(audit[0]).toMatchObject({ action: "reset" });
});

test("a changed part of the settings is learned afresh, the other is kept", async () => {
  const source = await createSource(ADAPTIVE);
  const report = { status: 200, rate: { concurrencyLimit: 4, limit: 300, windowMs: 30_000 } };
  await free(source, await grant(source), report);
  await admin("PUT", `/pools/${source.name}`, { ...ADAPTIVE, concurrency: { ...ADAPTIVE.concurrency, limit: 12 } });
  await evictDurableObject(objectOf(source));
  expect(await stateOf(source)).toMatchObject({ effectiveLimit: 12, learned: { rate: { stated: { limit: 300 } } } });
});

test("where nothing is adaptive, reports teach nothing and write nothing", async () => {
  const source = await createSource({ concurrency: { limit: 10 } });
  await free(source, await grant(source), { status: 429, rate: { concurrencyLimit: 1, limit: 1, windowMs: 60_000 } });
  expect(await stateOf(source)).toMatchObject({ effectiveLimit: 10, rpm: null, learned: { concurrency: null, rate: null } });
  expect((await rowOf(source)).learned).toBeNull();
});

test("explain says what a report would be read as and what it would change, and changes nothing", async () => {
  const clock = stopClock();
  const source = await createSource(ADAPTIVE);
  await grant(source);
  const before = await stateOf(source);
  const row = await rowOf(source);
  const report = { status: 429, rate: { limit: 100, remaining: 0, resetMs: 20_000, retryAfterMs: 5000 } };
  const answer = await explain(source, report);
  expect(answer.status).toBe(200);
  expect(answer.body.read).toEqual({
    status: 429,
    throttled: null,
    limit: 100,
    remaining: 0,
    resetMs: 20_000,
    tokenLimit: null,
    tokenRemaining: null,
    tokenResetMs: null,
    retryAfterMs: 5000,
    windowMs: null,
    concurrencyLimit: null,
  });
  expect(answer.body).toMatchObject({ signal: "throttled", closesGateForMs: 20_000, before });
  expect(answer.body.after.cooldownUntil).toBe(clock.now + 20_000);
  expect(answer.body.changes).toEqual(expect.arrayContaining(["cooldownUntil", "effectiveLimit", "learned"]));
  expect(await stateOf(source)).toEqual(before);
  expect(await rowOf(source)).toEqual(row);
  await grant(source);
});

test("explain reads raw headers, and refuses what a release would refuse", async () => {
  const source = await createSource(ADAPTIVE);
  const headers = { "X-RateLimit-Limit": "60", "x-ratelimit-remaining": 59, "Retry-After": ["7"] };
  const { body } = await explain(source, { status: 429, headers });
  expect(body.read).toMatchObject({ limit: 60, remaining: 59, retryAfterMs: 7000 });
  expectError(await explain(source, { status: 99 }), 400, "invalid_request", { field: "status" });
  expectError(await explain({ name: "nobody" }, {}), 404, "not_found");
  expectError(await reset({ name: "nobody" }), 404, "not_found");
});

test("storage of the version before learning opens, and is brought up to date", async () => {
  const clock = stopClock();
  const source = await createSource(ADAPTIVE);
  const slot = await grant(source);
  await runInDurableObject(objectOf(source), (_, state) => {
    state.storage.sql.exec("ALTER TABLE source DROP COLUMN learned");
    state.storage.sql.exec("UPDATE source SET layout = 1");
  });
  await evictDurableObject(objectOf(source));
  expect(await stateOf(source)).toMatchObject({ inUse: 1, effectiveLimit: 10 });
  expect((await rowOf(source)).layout).toBe(2);
  clock.pass(16_000);
  await free(source, slot, { status: 200, rate: { concurrencyLimit: 4 } });
  await evictDurableObject(objectOf(source));
  expect(await stateOf(source)).toMatchObject({ inUse: 0, effectiveLimit: 4 });
});
