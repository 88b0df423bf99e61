// Refresh tokens: rotated on use, answered again when the answer was lost, and the family's end when reused.

import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, test } from "vitest";
import { acquire, admin, API, call, configure, createSource, expectError, free, grant, objectOf, release, renew, sleep, stopClock, waiter, type Answer, type Source } from "./support";

interface Tokens {
  keyId: string;
  accessKey: string;
  expiresAt: number;
  refreshToken: string;
  refreshExpiresAt: number;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

async function mint(source: Source, wanted: object = {}): Promise<Tokens> {
  const { status, body } = await admin("POST", `/pools/${source.name}/keys`, wanted);
  expect(status).toBe(201);
  return body;
}

function refresh(source: { name: string }, refreshToken: unknown, ip?: string): Promise<Answer> {
  const headers: Record<string, string> = ip === undefined ? {} : { "CF-Connecting-IP": ip };
  return call("POST", `${API}/pools/${source.name}/keys/refresh`, { headers, body: JSON.stringify({ refreshToken }) });
}

async function refreshed(source: { name: string }, tokens: Tokens, ip?: string): Promise<Tokens> {
  const { status, body } = await refresh(source, tokens.refreshToken, ip);
  expect(status).toBe(200);
  return body;
}

/** The entries of the audit log but for those of making and minting, newest first. */
async function audit(source: Source): Promise<any[]> {
  const { body } = await admin("GET", `/pools/${source.name}/audit`);
  return body.entries.filter(({ action }: any) => action !== "created" && action !== "minted");
}

const statusUnder = async (source: Source, tokens: Tokens) => (await acquire(source, { key: tokens.accessKey })).status;

describe("a refresh token", () => {
  test("comes with each key, and trades for a new pair of the same family", async () => {
    const clock = stopClock();
    const source = await createSource();
    const first = await mint(source, { ttlMs: 60_000 });
    expect(first).toMatchObject({ expiresAt: clock.now + 60_000, refreshExpiresAt: clock.now + 30 * DAY });
    clock.pass(50_000);
    const second = await refreshed(source, first);
    expect(second).toMatchObject({ keyId: first.keyId, expiresAt: clock.now + 60_000, refreshExpiresAt: clock.now + 30 * DAY });
    expect(second.refreshToken).not.toBe(first.refreshToken);
    // The key that is out lives on to its own expiry.
    expect(await statusUnder(source, first)).toBe(200);
    clock.pass(10_000);
    expect(await statusUnder(source, first)).toBe(401);
    expect(await statusUnder(source, second)).toBe(200);
  });

  test("is answered again, to the letter, until the old key's end, while nothing of the answer was seen", async () => {
    const clock = stopClock();
    const source = await createSource();
    const first = await mint(source);
    clock.pass(HOUR - 60_000);
    const second = await refreshed(source, first);
    for (const ms of [0, 9_000, 40_000, 11_000]) {
      clock.pass(ms);
      await abortAllDurableObjects();
      expect(await refreshed(source, first)).toEqual(second);
    }
    // The old key in use says nothing of the new pair.
    expect(clock.now).toBe(first.expiresAt);
    expect(await statusUnder(source, second)).toBe(200);
    const third = await refreshed(source, second);
    expect(third.refreshToken).not.toBe(second.refreshToken);
  });

  test("is answered again for 10 s where the old key ends before, and not after", async () => {
    const clock = stopClock();
    const source = await createSource();
    const first = await mint(source, { ttlMs: 2_000 });
    clock.pass(30_000);
    const second = await refreshed(source, first);
    clock.pass(10_000);
    expect(await refreshed(source, first)).toEqual(second);
    const third = await refreshed(source, second);
    clock.pass(10_001);
    expectError(await refresh(source, second.refreshToken), 401, "unauthorized");
    expectError(await refresh(source, third.refreshToken), 401, "unauthorized");
  });

  test("is answered again while only the old key is used, by its owner too", async () => {
    const source = await createSource();
    const first = await mint(source);
    const second = await refreshed(source, first);
    const slot = await grant(source, { key: first.accessKey });
    expect((await renew(source, slot, { key: first.accessKey })).status).toBe(200);
    expect(await refreshed(source, first)).toEqual(second);
  });

  test("past the old key's end revokes the family, though nothing of the new pair was seen", async () => {
    const clock = stopClock();
    const source = await createSource();
    const first = await mint(source, { ttlMs: 60_000 });
    const second = await refreshed(source, first);
    clock.pass(60_001);
    expectError(await refresh(source, first.refreshToken), 401, "unauthorized");
    expectError(await refresh(source, second.refreshToken), 401, "unauthorized");
  });

  test.each<[string, (source: Source, key: string) => Promise<unknown>]>([
    ["an acquire", (source, key) => acquire(source, { key })],
    ["a renewal", async (source, key) => renew(source, await grant(source), { key })],
    ["a renewal of a slot that can't be", (source, key) => renew(source, { slotId: "x" }, { key })],
    ["a release", async (source, key) => release(source, await grant(source), undefined, { key })],
    ["a release of a slot that can't be", (source, key) => release(source, { slotId: "x" }, undefined, { key })],
    ["an acquire with a bad body", (source, key) => acquire(source, { key, body: "{" })],
    ["a release with a bad report", (source, key) => release(source, { slotId: "x" }, { status: 7 }, { key })],
  ])("used again after %s with the new key revokes the family, also where memory was lost in between", async (_, use) => {
    const source = await createSource();
    const first = await mint(source);
    const second = await refreshed(source, first);
    await abortAllDurableObjects();
    expect(await refreshed(source, first)).toEqual(second);
    await use(source, second.accessKey);
    await abortAllDurableObjects();
    expectError(await refresh(source, first.refreshToken), 401, "unauthorized");
    expect(await statusUnder(source, second)).toBe(401);
  });

  test("is remembered as answered, and its new key as used, by an object that was evicted", async () => {
    const source = await createSource();
    const first = await mint(source);
    const second = await refreshed(source, first);
    await evictDurableObject(objectOf(source));
    expect(await refreshed(source, first)).toEqual(second);
    expect((await renew(source, { slotId: "x" }, { key: second.accessKey })).status).toBe(404);
    await evictDurableObject(objectOf(source));
    expectError(await refresh(source, first.refreshToken), 401, "unauthorized");
  });

  test("used again after the new key was used revokes the family: all its keys, and those who wait", async () => {
    const source = await createSource({ concurrency: { limit: 1 } });
    const first = await mint(source);
    const second = await refreshed(source, first);
    const slot = await grant(source, { key: second.accessKey });
    const waiting = await waiter(source, { key: second.accessKey, waitMs: 30_000 });
    expectError(await refresh(source, first.refreshToken), 401, "unauthorized");
    expectError(await waiting.answer, 401, "unauthorized");
    for (const dead of [first, second]) expect(await statusUnder(source, dead)).toBe(401);
    expectError(await refresh(source, second.refreshToken), 401, "unauthorized");
    // The slot stays until its lease ends; another key may release it.
    await free(source, slot);
    expect(await audit(source)).toEqual([
      expect.objectContaining({ action: "revoked", detail: expect.objectContaining({ keyId: first.keyId }) }),
      expect.objectContaining({ action: "refreshed", detail: expect.objectContaining({ keyId: first.keyId }) }),
    ]);
  });

  test("tells whoever holds it what became of it", async () => {
    const clock = stopClock();
    const source = await createSource();
    const [short, first, revoked] = [await mint(source, { refreshTtlMs: 2_000 }), await mint(source), await mint(source)];
    clock.pass(2_000);
    expect((await refresh(source, short.refreshToken)).body.message).toMatch(/has expired/);
    await refreshed(source, await refreshed(source, first));
    expect((await refresh(source, first.refreshToken)).body.message).toMatch(/traded in before/);
    expect((await refresh(source, first.refreshToken)).body.message).toMatch(/is revoked/);
    await admin("DELETE", `/pools/${source.name}/keys/${revoked.keyId}`);
    expect((await refresh(source, revoked.refreshToken)).body.message).toMatch(/is revoked/);
  });

  test("whose answer was kept by a version that knew ten seconds only gets it again for as long", async () => {
    const clock = stopClock();
    const source = await createSource();
    const first = await mint(source);
    const second = await refreshed(source, first);
    // As that version wrote it: the moment of the refresh.
    await runInDurableObject(objectOf(source), (_, state) => state.storage.sql.exec("UPDATE families SET retired_at = ? WHERE retired IS NOT NULL", clock.now));
    await abortAllDurableObjects();
    clock.pass(10_000);
    expect(await refreshed(source, first)).toEqual(second);
    clock.pass(1);
    expectError(await refresh(source, first.refreshToken), 401, "unauthorized");
  });

  test("used again after its successor was used revokes the family, also within 10 s", async () => {
    const source = await createSource();
    const first = await mint(source);
    await refreshed(source, await refreshed(source, first));
    expectError(await refresh(source, first.refreshToken), 401, "unauthorized");
    expect(await statusUnder(source, first)).toBe(401);
  });

  test("past its lifetime is 401, and the family lives on", async () => {
    const clock = stopClock();
    const source = await createSource();
    const tokens = await mint(source, { ttlMs: HOUR, refreshTtlMs: 2_000 });
    clock.pass(2_000);
    expectError(await refresh(source, tokens.refreshToken), 401, "unauthorized");
    expect(await statusUnder(source, tokens)).toBe(200);
  });

  test("is kept as a digest only", async () => {
    const source = await createSource();
    const first = await mint(source);
    const second = await refreshed(source, first);
    const stored = await runInDurableObject(objectOf(source), (_, state) =>
      JSON.stringify(["families", "audit", "source"].map((table) => state.storage.sql.exec(`SELECT * FROM ${table}`).toArray())),
    );
    for (const { accessKey, refreshToken } of [first, second]) {
      for (const secret of [accessKey, refreshToken, ...refreshToken.split(".").slice(-2)]) expect(stored).not.toContain(secret);
    }
  });

  test("of another source, changed, or made up is 401 whether or not the source exists", async () => {
    const [source, other] = [await createSource(), await createSource()];
    const tokens = await mint(source);
    const answers = [
      await refresh(other, tokens.refreshToken),
      await refresh({ name: "nobody" }, tokens.refreshToken),
      await refresh({ name: "nobody" }, "sv_rt_x"),
      await refresh(source, `${tokens.refreshToken}x`),
      await refresh(source, tokens.accessKey),
      await refresh(source, "x".repeat(4096)),
    ];
    for (const answer of answers) {
      expectError(answer, 401, "unauthorized");
      expect(answer.headers.get("www-authenticate")).toBeTruthy();
      expect(answer.body).toEqual(answers[0]?.body);
    }
    await refreshed(source, tokens);
  });
});

describe("a refresh under an allowlist", () => {
  const [HERE, THERE] = ["192.0.2.1", "198.51.100.1"];
  const allow = (source: Source) => configure(source, { access: { ipAllowlist: [HERE] } });

  test("from elsewhere is 403 and changes nothing: the token is still good, and its successor unseen", async () => {
    const source = await createSource();
    const first = await mint(source);
    await allow(source);
    for (const ip of [THERE, undefined]) expectError(await refresh(source, first.refreshToken, ip), 403, "unauthorized");
    const second = await refreshed(source, first, HERE);
    for (const tokens of [first, second]) expectError(await refresh(source, tokens.refreshToken, THERE), 403, "unauthorized");
    expect(await refreshed(source, first, HERE)).toEqual(second);
  });

  test("with a bad token is 401 from anywhere, and a token used again is the end of its family", async () => {
    const source = await createSource();
    const first = await mint(source);
    await allow(source);
    expectError(await refresh(source, `${first.refreshToken}x`, THERE), 401, "unauthorized");
    const third = await refreshed(source, await refreshed(source, first, HERE), HERE);
    expectError(await refresh(source, first.refreshToken, THERE), 401, "unauthorized");
    expectError(await refresh(source, third.refreshToken, HERE), 401, "unauthorized");
  });

  test("that lets all in again needs no address", async () => {
    const source = await createSource({ access: { ipAllowlist: [HERE] } });
    const first = await mint(source);
    await configure(source, {});
    await refreshed(source, first);
  });
});

describe("the audit log", () => {
  const entries = async (source: Source) =>
    (await audit(source)).map(({ at, action, ip, detail }: any) => ({ at, action, ip, ...detail }));

  test("has one entry for the refreshes of an hour from one address, with their count", async () => {
    const clock = stopClock();
    const source = await createSource();
    const start = clock.now;
    let tokens = await mint(source);
    const { keyId } = tokens;
    for (let i = 0; i < 5; i += 1) {
      clock.pass(1_000);
      tokens = await refreshed(source, tokens, "192.0.2.1");
      if (i === 2) await evictDurableObject(objectOf(source));
    }
    const first = { at: start + 1_000, action: "refreshed", ip: "192.0.2.1", keyId, count: 5, lastAt: start + 5_000 };
    expect(await entries(source)).toEqual([first]);
    clock.pass(HOUR - 4_000);
    await refreshed(source, tokens, "192.0.2.1");
    expect(await entries(source)).toEqual([{ ...first, at: clock.now, count: 1, lastAt: clock.now }, first]);
  });

  test("shows a refresh from another address at once, and an answer given again too", async () => {
    const source = await createSource();
    const first = await mint(source);
    await refreshed(source, first, "192.0.2.1");
    await refreshed(source, first, "198.51.100.1");
    await refreshed(source, first, "192.0.2.1");
    expect((await entries(source)).map(({ ip, count }: any) => [ip, count])).toEqual([
      ["192.0.2.1", 1],
      ["198.51.100.1", 1],
      ["192.0.2.1", 1],
    ]);
  });

  test("keeps ten such entries of a family, and pushes nothing of an operator's or of another family out", async () => {
    const source = await createSource();
    const other = await mint(source);
    await refreshed(source, other, "192.0.2.1");
    const tokens = await mint(source);
    for (let i = 0; i < 30; i += 1) await refreshed(source, tokens, `198.51.100.${i}`);
    const all = await entries(source);
    expect(all.filter(({ keyId }: any) => keyId === tokens.keyId).map(({ ip }: any) => ip)).toEqual(
      Array.from({ length: 10 }, (_, i) => `198.51.100.${29 - i}`),
    );
    expect(all.filter(({ keyId }: any) => keyId === other.keyId)).toHaveLength(1);
    // Each page goes on where the last one ended.
    const seen: string[] = [];
    let before = "";
    do {
      const { body } = await admin("GET", `/pools/${source.name}/audit?limit=2${before}`);
      seen.push(...body.entries.map((entry: any) => `${entry.action} ${entry.requestId}`));
      before = body.next == null ? "" : `&before=${body.next}`;
    } while (before !== "");
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toHaveLength(all.length + 4);
  });

  test("says nothing of a refresh that was refused", async () => {
    const source = await createSource({ access: { ipAllowlist: ["192.0.2.1"] } });
    const tokens = await mint(source);
    await refresh(source, tokens.refreshToken, "198.51.100.1");
    await refresh(source, "sv_rt_x", "192.0.2.1");
    expect(await entries(source)).toEqual([]);
  });
});

test("a refresh without a token is 400 naming it", async () => {
  const source = await createSource();
  for (const body of [undefined, "{}", '{"refreshToken":5}', '{"refreshToken":""}', "[]", '{"refreshToken":"x","more":1}']) {
    expectError(await call("POST", `${API}/pools/${source.name}/keys/refresh`, { body }), 400, "invalid_request");
  }
});

test("a worker that mints a 2-second key holds a slot over several refreshes and releases it under the last key", async () => {
  const source = await createSource({ lease: { termMs: 1_500 } });
  let tokens = await mint(source, { ttlMs: 2_000 });
  const slot = await grant(source, { key: tokens.accessKey });
  for (let i = 0; i < 4; i += 1) {
    await sleep(900);
    tokens = await refreshed(source, tokens);
    expect((await renew(source, slot, { key: tokens.accessKey })).status).toBe(200);
  }
  await free({ ...source, key: tokens.accessKey }, slot);
});

test.each([
  [{ ttlMs: 999 }, "ttlMs"],
  [{ ttlMs: 30 * DAY + 1 }, "ttlMs"],
  [{ refreshTtlMs: 999 }, "refreshTtlMs"],
  [{ refreshTtlMs: 365 * DAY + 1 }, "refreshTtlMs"],
])("minting with %j is 400 naming %s", async (wanted, field) => {
  const source = await createSource();
  expectError(await admin("POST", `/pools/${source.name}/keys`, wanted), 400, "invalid_request", { field });
});
