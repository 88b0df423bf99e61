// The access log: every acquire attempt once, when it is answered; bounded, paged, without a secret.

import { abortAllDurableObjects, listDurableObjectIds, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { acquire, admin, API, call, configure, createSource, free, grant, mintKey, objectOf, release, renew, sleep, stopClock, waiter, type Source } from "./support";

interface Entry {
  at: number;
  requestId?: string;
  keyId?: string;
  ip?: string;
  status?: number;
  outcome: string;
  queuedMs?: number;
  ref?: string;
  count?: number;
}

async function log(source: Source, query = ""): Promise<{ entries: Entry[]; next: string | null }> {
  const { status, body } = await admin("GET", `/pools/${source.name}/log${query}`);
  expect(status).toBe(200);
  return body;
}

const outcomes = async (source: Source) => (await log(source)).entries.map(({ status, outcome }) => [status, outcome]);
const untilLogged = (source: Source, expected: unknown[][]) =>
  vi.waitFor(async () => expect(await outcomes(source)).toEqual(expected), { timeout: 2000, interval: 50 });

test("granted and refused attempts are in it, newest first; renew and release are not", async () => {
  const source = await createSource({ concurrency: { limit: 1 }, queue: { maxDepth: 1 } });
  const first = await acquire(source, { headers: { "CF-Connecting-IP": "203.0.113.9" } });
  await renew(source, first.body);
  const refused = await acquire(source);
  const timedOut = await acquire(source, { waitMs: 20 });
  const waiting = await waiter(source);
  const full = await acquire(source, { waitMs: 20 });
  await free(source, first.body);
  await waiting.answer;
  const { entries, next } = await log(source);
  expect(entries.map(({ status, outcome }) => [status, outcome])).toEqual([
    [200, "granted"],
    [429, "queue_full"],
    [504, "queue_timeout"],
    [429, "no_free_slot"],
    [200, "granted"],
  ]);
  expect(next).toBeNull();
  const id = (answer: { headers: Headers }) => answer.headers.get("x-swarmvia-request-id");
  expect(entries.slice(1).map((entry) => entry.requestId)).toEqual([full, timedOut, refused, first].map(id));
  expect(entries[4]).toMatchObject({ keyId: source.keyId, ip: "203.0.113.9", queuedMs: 0 });
  expect(entries[2]?.queuedMs).toBeGreaterThanOrEqual(20);
  const { body } = await admin("GET", `/pools/${source.name}/slots`);
  expect(entries[0]?.ref).toBe(body.slots[0].ref);
});

test("a repeat is in it with the slot that it got, also after a reset", async () => {
  const job = { idempotencyKey: "job-1" };
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const waiting = await waiter(source, job);
  const joined = acquire(source, { ...job, waitMs: 5000 });
  await vi.waitFor(async () => expect((await acquire(source, job)).status).toBe(429));
  await free(source, slot);
  await Promise.all([waiting.answer, joined]);
  await acquire(source, job);
  await abortAllDurableObjects();
  await acquire(source, job);
  const { body } = await admin("GET", `/pools/${source.name}/slots`);
  const [{ ref }] = body.slots;
  const { entries } = await log(source);
  const refs = entries.map((entry) => [entry.outcome, entry.ref]);
  expect(refs).toEqual([...Array(4).fill(["granted", ref]), ["no_free_slot", undefined], ["granted", "1"]]);
});

test("a cool-down and the RPM gate are named as reasons", async () => {
  const source = await createSource({ rpm: { limit: 1 } });
  const slot = await grant(source);
  await acquire(source);
  await release(source, slot, { status: 429, retryAfterMs: 60_000 });
  await acquire(source);
  expect(await outcomes(source)).toEqual([[429, "cooldown"], [429, "rpm"], [200, "granted"]]);
});

test("a malformed attempt is in it with its key", async () => {
  const source = await createSource();
  await acquire(source, { body: "{" });
  await acquire(source, { headers: { "Idempotency-Key": "a b" } });
  await acquire(source, { body: "x".repeat(70_000) });
  await untilLogged(source, [[413, "payload_too_large"], [400, "invalid_request"], [400, "invalid_request"]]);
  expect((await log(source)).entries[1]).toMatchObject({ keyId: source.keyId });
});

test("a malformed renew or release is not in it", async () => {
  const source = await createSource();
  const slot = await grant(source);
  expect((await release(source, slot, { status: 1 })).status).toBe(400);
  expect(await outcomes(source)).toEqual([[200, "granted"]]);
});

test("a revoked key's attempts are in it with its id", async () => {
  const source = await createSource();
  const dead = await mintKey(source);
  await admin("DELETE", `/pools/${source.name}/keys/${dead.keyId}`);
  expect((await acquire(source, { key: dead.key })).status).toBe(401);
  await untilLogged(source, [[401, "unauthorized"]]);
  expect((await log(source)).entries[0]).toMatchObject({ keyId: dead.keyId });
});

test("a good key in a forbidden carrier is in it", async () => {
  const source = await createSource({ access: { bearer: false } });
  const headers = { Authorization: `Bearer ${source.key}` };
  expect((await call("POST", `${API}/pools/${source.name}/lock/acquire`, { headers })).status).toBe(401);
  await untilLogged(source, [[401, "unauthorized"]]);
  expect((await log(source)).entries[0]).toMatchObject({ keyId: source.keyId });
});

test("a malformed cursor is 400, not the first page again", async () => {
  const source = await createSource();
  for (const path of ["log?before=x", "log?before=", "audit?before=1-x", "slots?after=x", "keys?after="]) {
    const { status, body } = await admin("GET", `/pools/${source.name}/${path}`);
    expect({ status, field: body.field }).toEqual({ status: 400, field: path.includes("before") ? "before" : "after" });
  }
});

test("it is filtered by outcome, key and request, page by page", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const other = await mintKey(source);
  await grant(source);
  for (let i = 0; i < 6; i += 1) await acquire(source, i % 2 ? { key: other.key } : {});
  const refused = await log(source, "?outcome=no_free_slot&limit=4");
  expect(refused.entries.map(({ outcome }) => outcome)).toEqual(Array(4).fill("no_free_slot"));
  expect((await log(source, `?outcome=no_free_slot&limit=4&before=${refused.next}`)).entries).toHaveLength(2);
  expect((await log(source, "?outcome=refused")).entries).toHaveLength(6);
  expect((await log(source, "?outcome=granted")).entries.map(({ keyId }) => keyId)).toEqual([source.keyId]);
  expect((await log(source, `?keyId=${other.keyId}`)).entries.map(({ keyId }) => keyId)).toEqual(Array(3).fill(other.keyId));
  const [one] = refused.entries;
  expect((await log(source, `?requestId=${one?.requestId}`)).entries).toEqual([one]);
  expect((await log(source, `?requestId=${one?.requestId}&outcome=granted`)).entries).toEqual([]);
});

test("a parameter that a list doesn't know, or a filter that names nothing, is 400", async () => {
  const source = await createSource();
  for (const [path, field] of [
    ["log?status=429", "query"],
    ["log?outcome=bored", "outcome"],
    ["log?keyId=worker-7", "keyId"],
    ["log?requestId=1", "requestId"],
    ["audit?outcome=granted", "query"],
    ["slots?before=1", "query"],
    ["keys?name=a", "query"],
  ]) {
    const { status, body } = await admin("GET", `/pools/${source.name}/${path}`);
    expect({ path, status, field: body.field }).toEqual({ path, status: 400, field });
  }
  expect((await admin("GET", "/pools?source=demo")).body.message).toContain("limit, after");
});

test("garbage keys reach it within a second, in a ring of their own, and say how many were left out", async () => {
  const source = await createSource({ log: { keep: 100 } });
  await grant(source);
  await Promise.all(Array.from({ length: 300 }, (_, i) => acquire(source, { key: `garbage-${i}`, headers: { "CF-Connecting-IP": "192.0.2.1" } })));
  await vi.waitFor(async () => expect((await log(source)).entries.length).toBeGreaterThan(1), { timeout: 1500, interval: 50 });
  const { entries } = await log(source);
  expect(entries.at(-1)).toMatchObject({ outcome: "granted" });
  const refused = entries.slice(0, -1);
  expect(refused.length).toBeLessThanOrEqual(10);
  expect(refused[0]).toMatchObject({ outcome: "omitted", count: 300 - 16 });
  expect(refused[0]).not.toHaveProperty("status");
  expect(refused[1]).toMatchObject({ status: 401, outcome: "unauthorized", ip: "192.0.2.1" });
  expect(refused[1]).not.toHaveProperty("keyId");
});

test("two hundred calls of a live key that are refused at once have an entry each", async () => {
  const source = await createSource({ access: { ipAllowlist: ["192.0.2.1/32"] } });
  const call = () => acquire(source, { headers: { "CF-Connecting-IP": "192.0.2.2" } });
  expect((await call()).status).toBe(403);
  const answers = await Promise.all(Array.from({ length: 200 }, call));
  expect(answers.every(({ status }) => status === 403)).toBe(true);
  const all = async () => (await admin("GET", `/pools/${source.name}/log?limit=1000`)).body.entries;
  await vi.waitFor(async () => expect((await all()).length).toBeGreaterThanOrEqual(201), { timeout: 3000, interval: 50 });
  const entries = await all();
  expect(entries).toHaveLength(201);
  expect(new Set(entries.map(({ requestId }: { requestId: string }) => requestId)).size).toBe(201);
  expect(entries.every(({ status, keyId }: { status: number; keyId?: string }) => status === 403 && keyId)).toBe(true);
});

test("callers whose key was good once can't push others out of it, and are found by their key", async () => {
  const clock = stopClock();
  const source = await createSource({ log: { keep: 100 }, concurrency: { limit: 10 } });
  const slots = await Promise.all(Array.from({ length: 5 }, () => grant(source)));
  for (const slot of slots) await free(source, slot);
  const [revoked, expired] = [await mintKey(source), await mintKey(source, { ttlMs: 1000 })];
  await admin("DELETE", `/pools/${source.name}/keys/${revoked.keyId}`);
  clock.pass(1000);
  for (let batch = 0; batch < 4; batch += 1) {
    await Promise.all(Array.from({ length: 100 }, (_, i) => acquire(source, { key: [revoked, expired][i % 2]?.key, body: i % 3 ? "" : "{" })));
    await sleep(700);
  }
  const { entries } = await log(source, "?limit=1000");
  expect(entries.filter(({ outcome }) => outcome === "granted")).toHaveLength(5);
  expect(entries.length).toBeLessThanOrEqual(5 + 10);
  const { body } = await admin("GET", `/pools/${source.name}`);
  expect(body.state.counters.acquires).toMatchObject({ granted: 5 });
  const { unauthorized, omitted } = body.state.counters.acquires;
  expect(unauthorized + omitted).toBe(400);
  const found = await Promise.all([revoked, expired].map(({ keyId }) => log(source, `?keyId=${keyId}`)));
  for (const [i, { entries }] of found.entries()) {
    for (const entry of entries) expect(entry.keyId).toBe([revoked, expired][i]?.keyId);
  }
  expect(found.flatMap(({ entries }) => entries).length).toBeGreaterThan(0);
});

test("a key whose life is over is known by its id, one that nobody signed isn't", async () => {
  const clock = stopClock();
  const source = await createSource();
  const { key, keyId } = await mintKey(source, { ttlMs: 1000 });
  clock.pass(1000);
  expect((await acquire(source, { key })).status).toBe(401);
  expect((await acquire(source, { key: `${key}x` })).status).toBe(401);
  await vi.waitFor(async () => expect((await log(source)).entries.map((entry) => entry.keyId).sort()).toEqual([keyId, undefined].sort()), {
    timeout: 2000,
    interval: 50,
  });
});

test("a name that was knocked at before it was a source is one at once", async () => {
  const knock = (name: string) => call("POST", `${API}/pools/${name}/lock/acquire`, { headers: { "X-Swarmvia-Key": "garbage" } });
  await knock("knocked-at");
  await new Promise((resolve) => setTimeout(resolve, 800));
  expect((await admin("PUT", "/pools/knocked-at", {})).status).toBe(201);
  await knock("knocked-at");
  const source = { name: "knocked-at" } as Source;
  await vi.waitFor(async () => expect(await outcomes(source)).toEqual([[401, "unauthorized"]]), { timeout: 1500, interval: 50 });
});

test("made-up source names create nothing", async () => {
  const ids = async () => (await listDurableObjectIds(env.SOURCES)).map(String).sort();
  const before = await ids();
  for (const name of ["made-up-1", "made-up-2"]) {
    await call("POST", `${API}/pools/${name}/lock/acquire`, { headers: { "X-Swarmvia-Key": "garbage" } });
  }
  await new Promise((resolve) => setTimeout(resolve, 800));
  expect(await ids()).toEqual(before);
  for (const name of ["made-up-1", "made-up-2"]) {
    const tables = await runInDurableObject(objectOf({ name }), (_, state) =>
      state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'").toArray(),
    );
    expect(tables).toEqual([]);
    expect((await admin("GET", `/pools/${name}`)).status).toBe(404);
  }
  expect((await admin("GET", "/pools?limit=1000")).body.pools.map((pool: { source: string }) => pool.source)).not.toContain("made-up-1");
});

test("it is paged by `before`, without a gap or a repeat", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  for (let i = 0; i < 25; i += 1) await acquire(source);
  const all = (await log(source)).entries;
  expect(all).toHaveLength(25);
  const paged: Entry[] = [];
  let query = "?limit=10";
  for (let pages = 1; ; pages += 1) {
    const { entries, next } = await log(source, query);
    paged.push(...entries);
    if (next === null) {
      expect(pages).toBe(3);
      break;
    }
    query = `?limit=10&before=${next}`;
  }
  expect(paged).toEqual(all);
});

test("it is bounded by log.keep, and survives a reset", async () => {
  const source = await createSource({ concurrency: { limit: 1 }, log: { keep: 100 } });
  for (let i = 0; i < 300; i += 1) await acquire(source);
  await abortAllDurableObjects();
  for (let i = 0; i < 10; i += 1) await acquire(source);
  const { entries } = await log(source, "?limit=1000");
  expect(entries.length).toBeGreaterThanOrEqual(100);
  expect(entries.length).toBeLessThanOrEqual(100 + 2 * 64);
  expect(entries.every((entry, i) => i === 0 || entry.at <= (entries[i - 1]?.at ?? 0))).toBe(true);
});

test("each time its object wakes, it goes on where it was", async () => {
  const source = await createSource({ concurrency: { limit: 1 }, log: { keep: 1000 } });
  const attempts = 150;
  for (let wakes = 1; wakes <= 3; wakes += 1) {
    for (let i = 0; i < attempts; i += 1) await acquire(source);
    const { entries } = await log(source, "?limit=1000");
    expect(entries).toHaveLength(wakes * attempts);
    await abortAllDurableObjects();
  }
});

test("no secret is in it", async () => {
  const source = await createSource();
  const slot = await grant(source, { idempotencyKey: "my-secret-job" });
  const text = JSON.stringify(await log(source));
  for (const secret of [source.key, slot.slotId, slot.slotId.slice(6), "my-secret-job"]) expect(text).not.toContain(secret);
});

test("what comes from outside is escaped, or not in it at all", async () => {
  const source = await createSource();
  await acquire(source, { headers: { "CF-Connecting-IP": '"><script>' } });
  expect((await log(source)).entries[0]).not.toHaveProperty("ip");
});

test("what was done on control routes is in the control log", async () => {
  const clock = stopClock();
  const source = await createSource();
  await configure(source, { concurrency: { limit: 2 } });
  const slot = await grant(source);
  const { body } = await admin("GET", `/pools/${source.name}/slots`);
  await admin("DELETE", `/pools/${source.name}/slots/${body.slots[0].ref}`);
  await admin("DELETE", `/pools/${source.name}/keys/${source.keyId}`);
  const audit = await admin("GET", `/pools/${source.name}/audit`, undefined);
  expect(audit.body.entries.map((entry: { action: string }) => entry.action)).toEqual(["revoked", "forced", "changed", "minted", "created"]);
  expect(audit.body.entries[1]).toMatchObject({ at: clock.now, detail: { ref: body.slots[0].ref } });
  expect(audit.body.entries[3]).toMatchObject({ detail: { keyId: source.keyId } });
  for (const secret of [source.key, slot.slotId]) expect(JSON.stringify(audit.body)).not.toContain(secret);
});
