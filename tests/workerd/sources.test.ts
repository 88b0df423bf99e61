// GET /pools and the life of a source, to its end.

import { env } from "cloudflare:workers";
import { listDurableObjectIds, runInDurableObject } from "cloudflare:test";
import { expect, test, vi } from "vitest";
import {
  acquire,
  admin,
  createSource,
  expectError,
  grant,
  mintKey,
  objectOf,
  release,
  renew,
  stateOf,
  stopClock,
  waiter,
  type Source,
} from "./support";

test("GET /pools/{source} shows the state: limit, slots, queue, RPM, cool-down", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 3 }, rpm: { limit: 2 } });
  expect(await stateOf(source)).toMatchObject({
    effectiveLimit: 3,
    inUse: 0,
    remainingSlots: 3,
    queueDepth: 0,
    cooldownUntil: null,
    rpm: { limit: 2, used: 0, remaining: 2, opensAt: null },
  });
  await grant(source);
  await release(source, await grant(source), { retryAfterMs: 5000 });
  expect(await stateOf(source)).toMatchObject({
    effectiveLimit: 3,
    inUse: 1,
    remainingSlots: 2,
    queueDepth: 0,
    cooldownUntil: clock.now + 5000,
    rpm: { limit: 2, used: 2, remaining: 0, opensAt: clock.now + 60_000 },
  });
});

test("a source without an RPM gate shows none", async () => {
  expect((await stateOf(await createSource())).rpm).toBeNull();
});

test("GET /pools lists the sources by name, page by page", async () => {
  const names = ["list-c", "list-a", "list-d", "list-b"];
  for (const name of names) expect((await admin("PUT", `/pools/${name}`, {})).status).toBe(201);
  const all = (await admin("GET", "/pools?after=list&limit=1000")).body;
  expect(all.next).toBeNull();
  expect(all.pools.map((pool: any) => pool.source).filter((name: string) => name.startsWith("list-"))).toEqual([...names].sort());
  const seen: string[] = [];
  for (let after = "list"; after;) {
    const { status, body } = await admin("GET", `/pools?limit=3&after=${after}`);
    expect(status).toBe(200);
    expect(body.pools.length).toBeLessThanOrEqual(3);
    seen.push(...body.pools.map((pool: any) => pool.source));
    after = body.next;
    if (after) expect(after).toBe(seen.at(-1));
  }
  expect(seen.slice(0, 4)).toEqual([...names].sort());
  expect(new Set(seen).size).toBe(seen.length);
});

test("an entry of the list tells when the source was made and changed", async () => {
  const source = await createSource();
  const { body } = await admin("PUT", `/pools/${source.name}`, { concurrency: { limit: 2 } });
  const { pools } = (await admin("GET", "/pools?limit=1000")).body;
  const entry = pools.find((pool: any) => pool.source === source.name);
  expect(entry).toMatchObject({ createdAt: body.createdAt, updatedAt: body.updatedAt });
  expect(entry).toHaveProperty("summary");
});

test("an active source's line of state follows it within 15 s", async () => {
  const source = await createSource({ concurrency: { limit: 4 } });
  const line = async () => (await admin("GET", "/pools?limit=1000")).body.pools.find((pool: any) => pool.source === source.name).summary;
  await grant(source);
  await grant(source);
  await vi.waitFor(async () => expect(await line()).toMatchObject({ effectiveLimit: 4, inUse: 2, queueDepth: 0 }), {
    timeout: 5000,
    interval: 20,
  });
});

test.each(["0", "1001", "-1", "x", "1.5", ""])("a limit of %j is 400 naming it, on every list", async (limit) => {
  const source = await createSource();
  for (const path of ["/pools", `/pools/${source.name}/slots`, `/pools/${source.name}/keys`]) {
    expectError(await admin("GET", `${path}?limit=${limit}`), 400, "invalid_request", { field: "limit" });
  }
});

test("an unknown source is 404 on every control route", async () => {
  for (const [method, path] of [
    ["GET", ""],
    ["DELETE", ""],
    ["GET", "/slots"],
    ["DELETE", "/slots/1"],
    ["POST", "/keys"],
    ["GET", "/keys"],
    ["DELETE", "/keys/0123456789abcdef"],
  ]) {
    expectError(await admin(method, `/pools/unknown${path}`), 404, "not_found");
  }
});

test("asking for a source that is not there creates nothing", async () => {
  const known = await createSource();
  const before = (await listDurableObjectIds(env.SOURCES)).length;
  const made: Source = { ...known, name: "made-up" };
  for (const key of [known.key, "sv_at_x", ""]) expectError(await acquire(made, { key }), 401, "unauthorized");
  expect((await listDurableObjectIds(env.SOURCES)).length).toBe(before);
  await admin("GET", "/pools/made-up");
  const { pools } = (await admin("GET", "/pools?limit=1000")).body;
  expect(pools.map((pool: any) => pool.source)).not.toContain("made-up");
});

test("DELETE ends a source: waiters get 401, keys and slots are gone, a second one is 404", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const waiting = [await waiter(source), await waiter(source)];
  const { status, body } = await admin("DELETE", `/pools/${source.name}`);
  expect({ status, body }).toEqual({ status: 200, body: { deleted: true } });
  for (const { answer } of waiting) expectError(await answer, 401, "unauthorized");
  for (const answer of [await acquire(source), await renew(source, slot), await release(source, slot)])
    expectError(answer, 401, "unauthorized");
  expectError(await admin("DELETE", `/pools/${source.name}`), 404, "not_found");
  expectError(await admin("GET", `/pools/${source.name}`), 404, "not_found");
  const { pools } = (await admin("GET", "/pools?limit=1000")).body;
  expect(pools.map((pool: any) => pool.source)).not.toContain(source.name);
});

test("DELETE leaves nothing stored and no alarm", async () => {
  const source = await createSource();
  for (let i = 0; i < 5; i += 1) await grant(source);
  await admin("DELETE", `/pools/${source.name}`);
  await runInDurableObject(objectOf(source), async (_, state) => {
    expect(await state.storage.getAlarm()).toBeNull();
    const tables = state.storage.sql
      .exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite%'")
      .toArray();
    for (const { name } of tables)
      expect(state.storage.sql.exec(`SELECT count(*) AS rows FROM "${name}"`).one().rows, String(name)).toBe(0);
  });
});

test("a source of the same name starts anew: no key, slot, RPM or setting of the first counts", async () => {
  const first = await createSource({ concurrency: { limit: 1 }, rpm: { limit: 1 } });
  const slot = await grant(first);
  await admin("DELETE", `/pools/${first.name}`);
  const created = await admin("PUT", `/pools/${first.name}`, { rpm: { limit: 5 } });
  expect(created.status).toBe(201);
  expect(created.body.state).toMatchObject({ inUse: 0, effectiveLimit: 10, rpm: { used: 0 } });
  expectError(await acquire(first), 401, "unauthorized");
  const second = { ...first, ...(await mintKey(first)) };
  expect((await release(second, slot)).body).toEqual({ released: false });
  await grant(second);
});

test("slot ids of a source before its end open nothing in the next of the same name", async () => {
  const first = await createSource();
  const slot = await grant(first);
  await admin("DELETE", `/pools/${first.name}`);
  await admin("PUT", `/pools/${first.name}`, {});
  const second = { ...first, ...(await mintKey(first)) };
  await grant(second);
  expectError(await renew(second, slot), 404, "not_found");
  expect((await stateOf(second)).inUse).toBe(1);
});
