// What is stored: a held slot is a row with a secret, no key is ever there, and everything has a bound.

import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { acquire, createSource, free, grant, objectOf, renew, stopClock, type Source } from "./support";

const query = (source: Source, sql: string): Promise<any[]> =>
  runInDurableObject(objectOf(source), (_, state) => state.storage.sql.exec(sql).toArray());
const heldRows = async (source: Source) => (await query(source, "SELECT count(*) AS rows FROM attempts WHERE secret IS NOT NULL"))[0].rows;

test("a held slot is a row with a secret; once released, none", async () => {
  const source = await createSource();
  const slots = [await grant(source), await grant(source), await grant(source)];
  expect(await heldRows(source)).toBe(3);
  for (const slot of slots) await free(source, slot);
  expect(await heldRows(source)).toBe(0);
});

test("a renewal is stored by the time it is answered", async () => {
  const clock = stopClock();
  const source = await createSource();
  const slot = await grant(source);
  clock.pass(7000);
  const { leaseDeadline } = (await renew(source, slot)).body;
  expect(await query(source, "SELECT lease_deadline, request_deadline FROM attempts WHERE secret IS NOT NULL")).toEqual([
    { lease_deadline: leaseDeadline, request_deadline: slot.requestDeadline },
  ]);
});

test("neither an access key nor a whole slot id is stored", async () => {
  const source = await createSource();
  const { slotId } = await grant(source, { idempotencyKey: "name-of-the-caller" });
  const tables = await query(source, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'");
  expect(tables.map(({ name }) => name).sort()).toEqual(expect.arrayContaining(["attempts", "families", "source"]));
  for (const { name } of tables) {
    const text = JSON.stringify(await query(source, `SELECT * FROM "${name}"`));
    for (const secret of [source.key, source.key.split(".")[2], slotId, "name-of-the-caller"]) expect(text).not.toContain(secret);
  }
});

test("attempts are bounded by log.keep, and a slot that is held is never overwritten", async () => {
  const source = await createSource({ concurrency: { limit: 1 }, log: { keep: 100 } });
  const slot = await grant(source);
  for (let i = 0; i < 20; i += 1) await Promise.all(Array.from({ length: 12 }, () => acquire(source)));
  const [{ rows }] = await query(source, "SELECT count(*) AS rows FROM attempts");
  expect(rows).toBeGreaterThanOrEqual(100);
  expect(rows).toBeLessThanOrEqual(300);
  expect((await renew(source, slot)).status).toBe(200);
  await evictDurableObject(objectOf(source));
  expect((await renew(source, slot)).status).toBe(200);
});

test("grants that count in the RPM window are not overwritten either", async () => {
  const clock = stopClock();
  const source = await createSource({ rpm: { limit: 110 }, log: { keep: 100 } });
  for (let i = 0; i < 110; i += 1) await free(source, await grant(source));
  for (let i = 0; i < 5; i += 1) await Promise.all(Array.from({ length: 20 }, () => acquire(source)));
  await evictDurableObject(objectOf(source));
  clock.pass(59_999);
  expect((await acquire(source)).body).toMatchObject({ reason: "rpm", retryAfterMs: 1 });
  clock.pass(1);
  await grant(source);
});
