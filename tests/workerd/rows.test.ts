// What each call costs in storage: rows are counted at the cursors, alarms at setAlarm.

import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import {
  acquire,
  admin,
  createSource,
  free,
  grant,
  granted,
  objectOf,
  release,
  renew,
  sleep,
  stopClock,
  waiter,
  type Source,
} from "./support";

let storage: DurableObjectStorage;
let cursors: SqlStorageCursor<any>[] = [];
let alarms = 0;
let isWatched = false;

/** Watches the object of a source. The test shares the isolate with it, and so its prototypes. */
async function watch(source: Source): Promise<void> {
  await runInDurableObject(objectOf(source), (_, state) => {
    storage = state.storage;
    if (isWatched) return;
    isWatched = true;
    const sql = Object.getPrototypeOf(storage.sql);
    const { exec } = sql;
    sql.exec = function (this: SqlStorage, ...args: unknown[]) {
      const cursor = exec.apply(this, args);
      if (this === storage.sql) cursors.push(cursor);
      return cursor;
    };
    const all = Object.getPrototypeOf(storage);
    const { setAlarm } = all;
    all.setAlarm = function (this: DurableObjectStorage, ...args: unknown[]) {
      if (this === storage) alarms += 1;
      return setAlarm.apply(this, args);
    };
  });
}

/** What `work` wrote: rows, and settings of the alarm. */
async function cost(work: () => Promise<unknown>): Promise<{ rows: number; alarms: number }> {
  cursors = [];
  alarms = 0;
  await work();
  return { rows: cursors.reduce((sum, cursor) => sum + cursor.rowsWritten, 0), alarms };
}

async function watched(settings: object = {}): Promise<Source> {
  const source = await createSource(settings);
  await watch(source);
  return source;
}

test("acquire, renew and release write one row each, and the first acquire arms the alarm", async () => {
  const clock = stopClock();
  const source = await watched();
  let slot = { slotId: "" };
  expect(await cost(async () => (slot = await grant(source)))).toEqual({ rows: 1, alarms: 1 });
  clock.pass(1000);
  expect(await cost(() => grant(source))).toEqual({ rows: 1, alarms: 0 });
  clock.pass(1000);
  expect(await cost(() => renew(source, slot))).toEqual({ rows: 1, alarms: 0 });
  clock.pass(1000);
  expect(await cost(() => free(source, slot))).toEqual({ rows: 1, alarms: 0 });
});

test("the same holds with an RPM gate, an idempotency key and a report that asks for nothing", async () => {
  const source = await watched({ rpm: { limit: 100 } });
  await grant(source);
  let slot = { slotId: "" };
  expect(await cost(async () => (slot = await grant(source, { idempotencyKey: "a" })))).toEqual({ rows: 1, alarms: 0 });
  expect(await cost(() => free(source, slot, { status: 200, throttled: 0, headers: { a: "b" } }))).toEqual({ rows: 1, alarms: 0 });
});

test("the same holds after the object was evicted", async () => {
  const source = await watched();
  const slot = await grant(source);
  await evictDurableObject(objectOf(source));
  await watch(source);
  await sleep(2);
  expect((await cost(() => renew(source, slot))).rows).toBe(1);
  expect((await cost(() => grant(source))).rows).toBe(1);
  expect(await cost(() => free(source, slot))).toEqual({ rows: 1, alarms: 0 });
});

test("the alarm moves only where a lease ends earlier than it stands", async () => {
  const clock = stopClock();
  const source = await watched();
  const slot = await grant(source);
  clock.pass(5000);
  expect((await cost(() => renew(source, slot))).alarms).toBe(0);
  await admin("PUT", `/pools/${source.name}`, { lease: { termMs: 1000 } });
  expect((await cost(() => grant(source))).alarms).toBe(1);
  expect((await cost(() => grant(source))).alarms).toBe(0);
});

test("the ring of attempts costs no more when it is full", async () => {
  const source = await watched({ log: { keep: 100 }, concurrency: { limit: 1 } });
  await grant(source);
  for (let i = 0; i < 300; i += 1) expect((await cost(() => acquire(source))).rows).toBeLessThanOrEqual(1);
});

test("a call that is queued writes its row when it is answered", async () => {
  const source = await watched({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  let waiting: Awaited<ReturnType<typeof waiter>>;
  expect((await cost(async () => (waiting = await waiter(source)))).rows).toBe(0);
  expect(
    (
      await cost(async () => {
        await free(source, slot);
        granted(await waiting.answer);
      })
    ).rows,
  ).toBe(2);
});

test("a refusal writes its entry of the log and no more", async () => {
  const source = await watched({ concurrency: { limit: 1 } });
  await grant(source);
  expect((await cost(() => acquire(source))).rows).toBeLessThanOrEqual(1);
  expect((await cost(() => acquire(source, { waitMs: 20 }))).rows).toBeLessThanOrEqual(1);
});

test("a call that changes nothing writes nothing", async () => {
  const source = await watched();
  const slot = await grant(source);
  await free(source, slot);
  const nothing = { rows: 0, alarms: 0 };
  expect(await cost(() => renew(source, slot))).toEqual(nothing);
  expect(await cost(() => release(source, slot))).toEqual(nothing);
  expect(await cost(() => release(source, slot, { status: 429, retryAfterMs: 5000 }))).toEqual(nothing);
  expect(await cost(() => acquire(source, { key: "sv_at_x" }))).toEqual(nothing);
  expect(await cost(() => admin("GET", `/pools/${source.name}`))).toEqual(nothing);
  expect(await cost(() => admin("GET", `/pools/${source.name}/slots`))).toEqual(nothing);
});

test("a refresh writes its family and its entry of the audit log, and the new key's first use the family again, once", async () => {
  const source = await watched();
  const minted = (await admin("POST", `/pools/${source.name}/keys`)).body;
  const refresh = (refreshToken: string) => admin("POST", `/pools/${source.name}/keys/refresh`, { refreshToken });
  let tokens = (await refresh(minted.refreshToken)).body;
  const key = tokens.accessKey;
  let slot = { slotId: "" };
  expect((await cost(async () => (slot = await grant(source, { key: minted.accessKey })))).rows).toBe(1);
  expect((await cost(() => grant(source, { key }))).rows).toBe(2);
  await sleep(2);
  expect((await cost(() => renew(source, slot, { key }))).rows).toBe(1);
  expect((await cost(() => release(source, slot, undefined, { key }))).rows).toBe(1);
  expect((await cost(() => grant(source, { key }))).rows).toBe(1);
  // The family, and one more in the hour's entry.
  expect((await cost(async () => (tokens = (await refresh(tokens.refreshToken)).body))).rows).toBe(2);
  expect((await cost(() => renew(source, { slotId: "x" }, { key: tokens.accessKey }))).rows).toBe(1);
  expect((await cost(() => renew(source, { slotId: "x" }, { key: tokens.accessKey }))).rows).toBe(0);
});
