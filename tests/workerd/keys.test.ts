// Access keys: minted, listed, expired, revoked.

import { abortAllDurableObjects } from "cloudflare:test";
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
  untilDepth,
  waiter,
  type Source,
} from "./support";

const HOUR = 3_600_000;
const mint = (source: { name: string }, body?: unknown) => admin("POST", `/pools/${source.name}/keys`, body);
const keysOf = async (source: { name: string }, query = "") => (await admin("GET", `/pools/${source.name}/keys${query}`)).body;
const revoke = (source: { name: string }, keyId: string) => admin("DELETE", `/pools/${source.name}/keys/${keyId}`);

test("minting answers 201 with a key, its family and its end; by default it lives an hour", async () => {
  const clock = stopClock();
  const source = await createSource();
  for (const body of [undefined, "", {}, { name: "worker-7" }, { ttlMs: null }]) {
    const answer = await mint(source, body);
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({
      keyId: expect.stringMatching(/^[A-Za-z0-9_-]{1,64}$/),
      accessKey: expect.stringMatching(/^sv_at_[A-Za-z0-9._-]+$/),
      expiresAt: clock.now + HOUR,
    });
    await grant({ ...source, key: answer.body.accessKey });
  }
});

test("every key is another one, of a family of its own", async () => {
  const source = await createSource();
  const keys = await Promise.all(Array.from({ length: 10 }, () => mintKey(source)));
  expect(new Set(keys.map((key) => key.key)).size).toBe(10);
  expect(new Set(keys.map((key) => key.keyId)).size).toBe(10);
});

test.each([
  ["ttlMs", { ttlMs: 999 }],
  ["ttlMs", { ttlMs: 2_592_000_001 }],
  ["ttlMs", { ttlMs: "3600000" }],
  ["ttlMs", { ttlMs: 1000.5 }],
  ["name", { name: 5 }],
  ["name", { name: "x".repeat(101) }],
  ["ttl", { ttl: 5000 }],
])("a wrong or unknown field is 400 naming %s: %j", async (field, body) => {
  const source = await createSource();
  expectError(await mint(source, body), 400, "invalid_request", { field });
  expect((await keysOf(source)).keys).toHaveLength(1);
});

test("a body that is no JSON object is 400", async () => {
  const source = await createSource();
  for (const body of ["{", "[]", "5"]) expectError(await mint(source, body), 400, "invalid_request");
});

test("the shortest life is a second and the longest 30 days", async () => {
  const clock = stopClock();
  const source = await createSource();
  for (const ttlMs of [1000, 2_592_000_000]) expect((await mint(source, { ttlMs })).body.expiresAt).toBe(clock.now + ttlMs);
});

test("a key is good until it expires, and at that moment no more, on every lock endpoint", async () => {
  const clock = stopClock();
  const source = await createSource();
  const { key } = await mintKey(source, { ttlMs: 5000 });
  const slot = await grant(source, { key });
  clock.pass(4999);
  expect((await renew(source, slot, { key })).status).toBe(200);
  clock.pass(1);
  for (const answer of [
    await acquire(source, { key }),
    await renew(source, slot, { key }),
    await release(source, slot, undefined, { key }),
  ]) {
    expectError(answer, 401, "unauthorized");
  }
  expect((await release(source, slot)).body).toEqual({ released: true });
});

test("a place in the queue ends with its key: 401, logged once, and the next one moves up", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const short = (await mint(source, { ttlMs: 1_000 })).body;
  const ending = await waiter(source, { key: short.accessKey });
  const next = await waiter(source);
  expectError(await ending.answer, 401, "unauthorized");
  expect(Date.now()).toBeGreaterThanOrEqual(short.expiresAt);
  expect(Date.now()).toBeLessThan(short.expiresAt + 900);
  await free(source, slot);
  await free(source, granted(await next.answer));
  const { body } = await admin("GET", `/pools/${source.name}/log?keyId=${short.keyId}`);
  expect(body.entries).toEqual([expect.objectContaining({ status: 401, outcome: "unauthorized" })]);
  expect(body.entries[0].queuedMs).toBeGreaterThan(500);
});

test("a repeat with a fresher key of the family keeps the place", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const short = (await mint(source, { ttlMs: 3_000 })).body;
  const first = await waiter(source, { key: short.accessKey, idempotencyKey: "job" });
  const behind = await waiter(source);
  const fresh = (await admin("POST", `/pools/${source.name}/keys/refresh`, { refreshToken: short.refreshToken })).body;
  const again = acquire(source, { key: fresh.accessKey, idempotencyKey: "job", waitMs: 10_000 });
  expectError(await first.answer, 401, "unauthorized");
  // The fresh key lives as short; one more takes over.
  const fresher = (await admin("POST", `/pools/${source.name}/keys/refresh`, { refreshToken: fresh.refreshToken })).body;
  const last = acquire(source, { key: fresher.accessKey, idempotencyKey: "job", waitMs: 10_000 });
  await isOpen(last, 50);
  await free(source, slot);
  const answers = [await again, await last];
  expect(answers.map(({ status }) => status)).toContain(200);
  expect(await isOpen(behind.answer, 50)).toBe(true);
  await free(source, granted(answers[1] as (typeof answers)[1]));
  granted(await behind.answer);
});

test("a waiter whose object was reset keeps the end of its key", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  const short = (await mint(source, { ttlMs: 2_500 })).body;
  const ending = await waiter(source, { key: short.accessKey });
  await abortAllDurableObjects();
  await untilDepth(source, 1);
  expectError(await ending.answer, 401, "unauthorized");
  expect(Date.now()).toBeLessThan(short.expiresAt + 900);
});

test("a key of another source is no key", async () => {
  const [source, other] = [await createSource(), await createSource()];
  const slot = await grant(source);
  expectError(await acquire(source, { key: other.key }), 401, "unauthorized");
  expectError(await renew(source, slot, { key: other.key }), 401, "unauthorized");
  expectError(await release(source, slot, undefined, { key: other.key }), 401, "unauthorized");
  expect((await renew(source, slot)).status).toBe(200);
});

test("the list tells ids, names, times and states, and never a key", async () => {
  const clock = stopClock();
  const source = await createSource();
  const brief = (await mint(source, { name: "brief", ttlMs: 1000 })).body;
  const revoked = (await mint(source, { name: 'ünïcode "x"' })).body;
  clock.pass(1000);
  await revoke(source, revoked.keyId);
  const { keys } = await keysOf(source);
  const entry = (keyId: string) => keys.find((key: any) => key.keyId === keyId);
  expect(keys).toHaveLength(3);
  expect(entry(source.keyId)).toMatchObject({
    name: null,
    state: "live",
    createdAt: clock.now - 1000,
    expiresAt: clock.now - 1000 + HOUR,
    revokedAt: null,
  });
  expect(entry(revoked.keyId)).toMatchObject({ name: 'ünïcode "x"', state: "revoked", revokedAt: clock.now });
  expect(entry(brief.keyId)).toMatchObject({ name: "brief", expiresAt: clock.now });
  expect(JSON.stringify(keys)).not.toMatch(/sv_at_|sv_rt_|eyJ/);
});

test("the list comes page by page, each key once", async () => {
  const source = await createSource();
  for (let i = 0; i < 6; i += 1) await mintKey(source);
  const seen: string[] = [];
  let query = "?limit=3";
  for (let pages = 0; query && pages < 5; pages += 1) {
    const { keys, next } = await keysOf(source, query);
    expect(keys.length).toBeLessThanOrEqual(3);
    seen.push(...keys.map((key: any) => key.keyId));
    query = next && `?limit=3&after=${next}`;
  }
  expect(seen).toHaveLength(7);
  expect(new Set(seen).size).toBe(7);
});

test("a revoked key is out on the next call, for good", async () => {
  const source = await createSource();
  const other: Source = { ...source, ...(await mintKey(source)) };
  const slot = await grant(source);
  const { status, body } = await revoke(source, source.keyId);
  expect({ status, body }).toEqual({ status: 200, body: { keyId: source.keyId, revoked: true } });
  for (let i = 0; i < 3; i += 1) expectError(await acquire(source), 401, "unauthorized");
  expectError(await renew(source, slot), 401, "unauthorized");
  expectError(await release(source, slot), 401, "unauthorized");
  await grant(other);
});

test("the slots of a revoked key stay until their leases end, and another key may release them", async () => {
  const clock = stopClock();
  const source = await createSource();
  const other = await mintKey(source);
  const [one] = [await grant(source), await grant(source)];
  await revoke(source, source.keyId);
  await expectHeld(source, 2);
  expect((await release(source, one, undefined, { key: other.key })).body).toEqual({ released: true });
  clock.pass(29_999);
  await expectHeld(source, 1);
  clock.pass(1);
  await expectHeld(source, 0);
});

test("the waiters of a revoked key get 401 at once, and others keep their places", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const other = await mintKey(source);
  const mine = [await waiter(source), await waiter(source, { idempotencyKey: "a" })];
  const theirs = await waiter(source, { key: other.key });
  await revoke(source, source.keyId);
  for (const { answer } of mine) {
    expectError(await answer, 401, "unauthorized");
    expect((await answer).headers.get("WWW-Authenticate")).toBeTruthy();
  }
  await untilDepth(source, 1);
  expect((await release(source, slot, undefined, { key: other.key })).body).toEqual({ released: true });
  granted(await theirs.answer);
});

test("a key that is unknown or already revoked is 404", async () => {
  const source = await createSource();
  const other = await createSource();
  for (const wrong of ["x", "0123456789abcdef", "%00", "x".repeat(200), other.keyId])
    expectError(await revoke(source, wrong), 404, "not_found");
  expect((await revoke(source, source.keyId)).status).toBe(200);
  expectError(await revoke(source, source.keyId), 404, "not_found");
  await grant(other);
});
