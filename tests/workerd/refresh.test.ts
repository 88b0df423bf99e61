// Refresh tokens: rotated on use, answered again when the answer was lost, and the family's end when reused.

import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { describe, expect, test } from "vitest";
import { acquire, admin, API, call, createSource, expectError, free, grant, objectOf, renew, sleep, stopClock, waiter, type Answer, type Source } from "./support";

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

function refresh(source: { name: string }, refreshToken: unknown): Promise<Answer> {
  return call("POST", `${API}/pools/${source.name}/keys/refresh`, { body: JSON.stringify({ refreshToken }) });
}

async function refreshed(source: { name: string }, tokens: Tokens): Promise<Tokens> {
  const { status, body } = await refresh(source, tokens.refreshToken);
  expect(status).toBe(200);
  return body;
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

  test("is answered again with the same result within 10 s, while its successor is unused", async () => {
    const clock = stopClock();
    const source = await createSource();
    const first = await mint(source);
    const second = await refreshed(source, first);
    clock.pass(10_000);
    await abortAllDurableObjects();
    expect(await refreshed(source, first)).toEqual(second);
    expect(await statusUnder(source, second)).toBe(200);
    const third = await refreshed(source, second);
    expect(third.refreshToken).not.toBe(second.refreshToken);
  });

  test("used again after 10 s revokes the family: all its keys, and those who wait", async () => {
    const clock = stopClock();
    const source = await createSource({ concurrency: { limit: 1 } });
    const first = await mint(source);
    const second = await refreshed(source, first);
    const slot = await grant(source, { key: second.accessKey });
    const waiting = await waiter(source, { key: second.accessKey, waitMs: 30_000 });
    clock.pass(10_001);
    expectError(await refresh(source, first.refreshToken), 401, "unauthorized");
    expectError(await waiting.answer, 401, "unauthorized");
    for (const dead of [first, second]) expect(await statusUnder(source, dead)).toBe(401);
    expectError(await refresh(source, second.refreshToken), 401, "unauthorized");
    // The slot stays until its lease ends; another key may release it.
    await free(source, slot);
    const { body } = await admin("GET", `/pools/${source.name}/audit`);
    expect(body.entries[0]).toMatchObject({ action: "revoked", detail: { keyId: first.keyId } });
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
