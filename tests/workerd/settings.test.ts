// PUT and GET /pools/{source}: settings are whole, bounded, and guarded against lost updates.

import { expect, test } from "vitest";
import { acquire, admin, API, call, configure, createSource, expectError, grant, stateOf } from "./support";

const DEFAULTS = {
  concurrency: { limit: 10, adaptive: false, min: 1, max: 10 },
  rpm: { limit: null, adaptive: false },
  queue: { maxDepth: 100, timeoutMs: 30_000 },
  lease: { termMs: 30_000, renewIntervalMs: 10_000, requestTimeoutMs: 60_000 },
  access: { bearer: true, swarmvia: true, ipAllowlist: [], jwt: null, cloudflareAccess: null },
  log: { keep: 10_000 },
  location: null,
};

/** What a change of settings would change, and time would not. */
const read = async (name: string) => {
  const { settings, version, updatedAt } = (await admin("GET", `/pools/${name}`)).body;
  return { settings, version, updatedAt };
};

test("PUT creates with 201 and replaces with 200; every part that is left out has its default", async () => {
  const created = await admin("PUT", "/pools/whole", {});
  expect(created.status).toBe(201);
  expect(created.body).toMatchObject({ source: "whole", settings: DEFAULTS, state: { inUse: 0 } });
  const changed = await admin("PUT", "/pools/whole", { concurrency: { limit: 3 }, queue: { maxDepth: 7 }, log: {} });
  expect(changed.status).toBe(200);
  expect(changed.body.settings).toEqual({
    ...DEFAULTS,
    concurrency: { limit: 3, adaptive: false, min: 1, max: 3 },
    queue: { maxDepth: 7, timeoutMs: 30_000 },
  });
  expect(changed.body).toMatchObject(await read("whole"));
  expect((await admin("PUT", "/pools/whole", {})).body.settings).toEqual(DEFAULTS);
});

test("what was not said follows from what was: max, renewIntervalMs, requestTimeoutMs", async () => {
  const { body } = await admin("PUT", "/pools/follows", { concurrency: { limit: 40 }, lease: { termMs: 90_000 } });
  expect(body.settings.concurrency.max).toBe(40);
  expect(body.settings.lease).toEqual({ termMs: 90_000, renewIntervalMs: 30_000, requestTimeoutMs: 180_000 });
  const short = await admin("PUT", "/pools/follows", { concurrency: { limit: 1 }, lease: { termMs: 500 } });
  expect(short.body.settings.lease).toEqual({ termMs: 500, renewIntervalMs: 166, requestTimeoutMs: 60_000 });
});

test("settings may be sent back as they were read, and every part may be set", async () => {
  const all = {
    concurrency: { limit: 5, adaptive: true, min: 2, max: 9 },
    rpm: { limit: 1_000_000, adaptive: true },
    queue: { maxDepth: 10_000, timeoutMs: 600_000 },
    lease: { termMs: 600_000, renewIntervalMs: 599_999, requestTimeoutMs: 86_400_000 },
    access: { bearer: false, swarmvia: false, ipAllowlist: [], jwt: null, cloudflareAccess: null },
    log: { keep: 100_000 },
    location: "weur",
  };
  expect((await admin("PUT", "/pools/all", all)).body.settings).toEqual(all);
  const { settings } = await read("all");
  expect((await admin("PUT", "/pools/all", settings)).body.settings).toEqual(all);
});

test.each([
  ["concurrency", { concurrency: [] }],
  ["concurrency.limit", { concurrency: { limit: 0 } }],
  ["concurrency.limit", { concurrency: { limit: 10_001 } }],
  ["concurrency.limit", { concurrency: { limit: 1.5 } }],
  ["concurrency.limit", { concurrency: { limit: "3" } }],
  ["concurrency.adaptive", { concurrency: { adaptive: "yes" } }],
  ["concurrency.min", { concurrency: { limit: 3, min: 4 } }],
  ["concurrency.min", { concurrency: { min: 0 } }],
  ["concurrency.max", { concurrency: { limit: 3, max: 2 } }],
  ["concurrency.burst", { concurrency: { burst: 1 } }],
  ["rpm.limit", { rpm: { limit: 0 } }],
  ["rpm.limit", { rpm: { limit: 1_000_001 } }],
  ["rpm.adaptive", { rpm: { adaptive: 1 } }],
  ["rpm.window", { rpm: { window: 60 } }],
  ["queue.maxDepth", { queue: { maxDepth: -1 } }],
  ["queue.maxDepth", { queue: { maxDepth: 10_001 } }],
  ["queue.timeoutMs", { queue: { timeoutMs: 600_001 } }],
  ["lease.termMs", { lease: { termMs: 499 } }],
  ["lease.termMs", { lease: { termMs: 600_001 } }],
  ["lease.renewIntervalMs", { lease: { termMs: 1000, renewIntervalMs: 1000 } }],
  ["lease.renewIntervalMs", { lease: { renewIntervalMs: 0 } }],
  ["lease.requestTimeoutMs", { lease: { termMs: 1000, requestTimeoutMs: 999 } }],
  ["lease.requestTimeoutMs", { lease: { requestTimeoutMs: 86_400_001 } }],
  ["access.bearer", { access: { bearer: "yes" } }],
  ["access.swarmvia", { access: { swarmvia: 0 } }],
  ["access.basic", { access: { basic: true } }],
  ["log.keep", { log: { keep: 99 } }],
  ["log.keep", { log: { keep: 100_001 } }],
  ["location", { location: "mars" }],
  ["location", { location: 5 }],
  ["limit", { limit: 5 }],
  ["Concurrency", { Concurrency: {} }],
])("a field that is unknown or out of range is 400 naming it, and nothing changes: %s", async (field, settings) => {
  await admin("PUT", "/pools/strict", { concurrency: { limit: 2 } });
  const before = await read("strict");
  const answer = await admin("PUT", "/pools/strict", settings);
  expectError(answer, 400, "invalid_request", { field });
  expect(await read("strict")).toEqual(before);
});

test.each([
  ["concurrency", '{"concurrency":{"limit":3},"concurrency":{"limit":3}}'],
  ["concurrency.limit", '{"concurrency":{"limit":3,"limit":4}}'],
  ["queue.maxDepth", '{"queue":{"maxDepth":3,"maxDepth":null}}'],
  ["log", '{"log":null,"log":{}}'],
  ["access", '{"access":{"ipAllowlist":["203.0.113.0/24"]},"access":{}}'],
  ["access.ipAllowlist", '{"access":{"ipAllowlist":["203.0.113.0/24"],"ipAllowlist":[]}}'],
  ["access.ipAllowlist", '{"access":{"ipAllowlist":["203.0.113.0/24"],"\\u0069pAllowlist":[]}}'],
  ["access.jwt", '{"access":{"jwt":{"issuer":"i","audience":"a","jwksUrl":"https://idp.example/"},"jwt":null}}'],
  ["access.jwt.audience", '{"access":{"jwt":{"issuer":"i","audience":"a","audience":"b","jwksUrl":"https://idp.example/"}}}'],
  ["access.jwt.jwks.keys[0].kid", '{"access":{"jwt":{"issuer":"i","audience":"a","jwks":{"keys":[{"kid":"a","kid":"b"}]}}}}'],
  ["access.cloudflareAccess.teamDomain", '{"access":{"cloudflareAccess":{"teamDomain":"a","teamDomain":"b"}}}'],
  ["unknown", '{"unknown":1,"unknown":2}'],
])("a field that comes twice is 400 naming it, and nothing changes: %s", async (field, body) => {
  await admin("PUT", "/pools/twice", { concurrency: { limit: 2 } });
  const before = await read("twice");
  expectError(await admin("PUT", "/pools/twice", body), 400, "invalid_request", { field });
  expect(await read("twice")).toEqual(before);
});

test("a field of a key to mint or to refresh that comes twice is 400 naming it, and spends nothing", async () => {
  const source = await createSource();
  for (const field of ["name", "ttlMs", "refreshTtlMs"]) {
    const value = field === "name" ? '"a"' : 60_000;
    const answer = await admin("POST", `/pools/${source.name}/keys`, `{"${field}":${value},"${field}":${value}}`);
    expectError(answer, 400, "invalid_request", { field });
  }
  const { refreshToken } = (await admin("POST", `/pools/${source.name}/keys`)).body;
  const refresh = (body: string) => call("POST", `${API}/pools/${source.name}/keys/refresh`, { body });
  const twice = await refresh(`{"refreshToken":"x","refreshToken":"${refreshToken}"}`);
  expectError(twice, 400, "invalid_request", { field: "refreshToken" });
  expect((await refresh(`{"refreshToken":"${refreshToken}"}`)).status).toBe(200);
});

test("settings that are nested too deep, or hold too much, are 400 before they are read", async () => {
  const deep = "[".repeat(100) + "]".repeat(100);
  const wrong: [string, string][] = [
    ["", deep],
    ["queue", `{"queue":${deep}}`],
    ["access.jwt.jwks", `{"access":{"jwt":{"issuer":"i","audience":"a","jwks":{"keys":[{"kty":"OKP","x":${deep}}]}}}}`],
    ["access.ipAllowlist", JSON.stringify({ access: { ipAllowlist: Array(5000).fill("::1") } })],
  ];
  for (const [field, body] of wrong) {
    const answer = await admin("PUT", "/pools/deep", body);
    expectError(answer, 400, "invalid_request");
    expect(answer.body.field ?? "").toBe(field);
  }
});

test("more than 300 renewals a second are 400, and the error says to lengthen the term", async () => {
  const answer = await admin("PUT", "/pools/busy", { concurrency: { limit: 5, max: 301 }, lease: { termMs: 3000, renewIntervalMs: 1000 } });
  expectError(answer, 400, "invalid_request");
  expect(answer.body.message).toMatch(/term/);
  expect(answer.body.field).toMatch(/^(lease|concurrency)\./);
  expect((await admin("GET", "/pools/busy")).status).toBe(404);
  expect((await admin("PUT", "/pools/busy", { concurrency: { limit: 300 }, lease: { termMs: 3000 } })).status).toBe(201);
  expectError(await admin("PUT", "/pools/busy", { concurrency: { limit: 10_000 } }), 400, "invalid_request");
  expect((await admin("PUT", "/pools/busy", { concurrency: { limit: 10_000 }, lease: { termMs: 120_000 } })).status).toBe(200);
});

test.each(["{", "[]", '"x"', "5", "{}}", "concurrency: 5"])("a body that is no JSON object is 400: %s", async (body) => {
  expectError(await admin("PUT", "/pools/no-json", body), 400, "invalid_request");
  expect((await admin("GET", "/pools/no-json")).status).toBe(404);
});

test("a name that would be an API host's own label is reserved", async () => {
  expectError(await admin("PUT", "/pools/api", {}), 400, "invalid_request");
  expect((await admin("GET", "/pools/api")).status).toBe(404);
  expect((await admin("PUT", "/pools/apis", {})).status).toBe(201);
});

test("integers may be spelled with a fraction of nothing", async () => {
  const { status, body } = await admin("PUT", "/pools/spelled", '{"concurrency":{"limit":3.0},"queue":{"timeoutMs":1e3}}');
  expect(status).toBe(201);
  expect(body.settings.concurrency.limit).toBe(3);
  expect(body.settings.queue.timeoutMs).toBe(1000);
});

test("the version is another one after each change, createdAt stays", async () => {
  const one = (await admin("PUT", "/pools/version", {})).body;
  const two = (await admin("PUT", "/pools/version", { concurrency: { limit: 2 } })).body;
  expect(two.version).not.toBe(one.version);
  expect(two.createdAt).toBe(one.createdAt);
  expect(two.updatedAt).toBeGreaterThanOrEqual(one.updatedAt);
  expect(Math.abs(one.createdAt - Date.now())).toBeLessThan(60_000);
});

test("the ETag is strong, the same on PUT and GET, changes with the settings and not with the state", async () => {
  const source = await createSource();
  const path = `/pools/${source.name}`;
  const etag = (await admin("GET", path)).headers.get("ETag");
  expect(etag).toMatch(/^"[!#-~]+"$/);
  await grant(source);
  await acquire(source, { body: "{" });
  expect((await admin("GET", path)).headers.get("ETag")).toBe(etag);
  const changed = (await configure(source, { concurrency: { limit: 2 } })).headers.get("ETag");
  expect(changed).not.toBe(etag);
  expect((await admin("GET", path)).headers.get("ETag")).toBe(changed);
});

test("If-Match replaces only what was read: a stale one is 412 and changes nothing", async () => {
  const source = await createSource();
  const etag = (await admin("GET", `/pools/${source.name}`)).headers.get("ETag") ?? "";
  const second = await configure(source, { concurrency: { limit: 2 } }, { "If-Match": etag });
  expect(second.status).toBe(200);
  for (const stale of [etag, '"x"', "x", ",", `"x", ${etag}`]) {
    expectError(await configure(source, { concurrency: { limit: 9 } }, { "If-Match": stale }), 412, "precondition_failed");
  }
  expect((await stateOf(source)).effectiveLimit).toBe(2);
  const current = second.headers.get("ETag") ?? "";
  const third = await configure(source, { concurrency: { limit: 4 } }, { "If-Match": `"x", ${current}` });
  expect(third.status).toBe(200);
  expect(third.headers.get("ETag")).not.toBe(current);
  expect((await configure(source, { concurrency: { limit: 5 } }, { "If-Match": "*" })).status).toBe(200);
});

test("If-Match takes the tag also as a proxy that compresses passes it on, with W/", async () => {
  const source = await createSource();
  const etag = (await admin("GET", `/pools/${source.name}`)).headers.get("ETag");
  expect((await configure(source, {}, { "If-Match": `W/${etag}` })).status).toBe(200);
});

test("of two changes to the same version, one is made and the other is 412", async () => {
  const source = await createSource();
  const etag = (await admin("GET", `/pools/${source.name}`)).headers.get("ETag") ?? "";
  const answers = await Promise.all([2, 3, 4, 5].map((limit) => configure(source, { concurrency: { limit } }, { "If-Match": etag })));
  expect(answers.map((answer) => answer.status).sort()).toEqual([200, 412, 412, 412]);
});

test("a deletion is guarded as a change is: at another version nothing is deleted", async () => {
  const { name } = await createSource();
  const path = `/pools/${name}`;
  const read = (await admin("GET", path)).headers.get("ETag") ?? "";
  await admin("PUT", path, { concurrency: { limit: 2 } }, { "If-Match": read });
  for (const stale of [read, '"x"', "unquoted"]) {
    expectError(await admin("DELETE", path, undefined, { "If-Match": stale }), 412, "precondition_failed");
  }
  expectError(await admin("DELETE", path, undefined, { "If-None-Match": '"x"' }), 400, "invalid_request");
  expectError(await admin("DELETE", path, undefined, { "If-None-Match": "*" }), 412, "precondition_failed");
  expect((await admin("GET", path)).body.settings.concurrency.limit).toBe(2);
  expect((await admin("GET", "/pools?limit=1000")).body.pools.some((pool: { source: string }) => pool.source === name)).toBe(true);

  const stands = (await admin("GET", path)).headers.get("ETag") ?? "";
  expect((await admin("DELETE", path, undefined, { "If-Match": stands })).status).toBe(200);
  for (const tag of [stands, "*", "x"]) expectError(await admin("DELETE", path, undefined, { "If-Match": tag }), 404, "not_found");
});

test("If-Match on a source that is not there is 412 and creates nothing; If-None-Match: * creates only", async () => {
  for (const tag of ["*", '"x"']) expectError(await admin("PUT", "/pools/guarded", {}, { "If-Match": tag }), 412, "precondition_failed");
  expect((await admin("GET", "/pools/guarded")).status).toBe(404);
  expect((await admin("PUT", "/pools/guarded", {}, { "If-None-Match": "*" })).status).toBe(201);
  expectError(await admin("PUT", "/pools/guarded", {}, { "If-None-Match": "*" }), 412, "precondition_failed");
  expectError(await admin("PUT", "/pools/guarded", {}, { "If-None-Match": '"x"' }), 400, "invalid_request");
});
