// What is refused before it is admitted, and in which order: host, route, method, size, key, body.

import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { API, acquire, admin, call, createSource, expectError, grant, lock, renew, stateOf, type Source } from "./support";

const LIMIT = 65_536;
const padded = (bytes: number) => `{}${" ".repeat(bytes - 2)}`;
/** A body whose length is not declared. */
const chunked = (text: string) =>
  new ReadableStream({
    start(controller) {
      for (let at = 0; at < text.length; at += 10_000) controller.enqueue(new TextEncoder().encode(text.slice(at, at + 10_000)));
      controller.close();
    },
  });
const LOCK_PATHS = (source: Source, slotId: string) =>
  ["acquire", `${slotId}/renew`, `${slotId}/release`].map((verb) => `/pools/${source.name}/lock/${verb}`);

test.each([
  "/",
  "/pools/",
  "/pool/demo/lock/acquire",
  "/pools/demo/lock",
  "/pools/demo/lock/",
  "/pools/demo/lock/acquire/",
  "/pools/demo/lock/acquire/now",
  "/pools/demo/lock//renew",
  "/pools/demo/lock/x/y/renew",
  "/pools/demo/lock/x/extend",
  "/pools//lock/acquire",
  "//pools/demo/lock/acquire",
  "/pools/demo/Lock/acquire",
  "/v1/pools/demo/lock/acquire",
  "/pools/demo/keys/k/x",
  "/pools/demo/slots/",
  "/healthz/",
])("a path that is no route is 404: %s", async (path) => {
  expectError(await admin("POST", path), 404, "not_found");
});

test.each(["Demo", "a_b", "-a", "a-", "a.b", "%61", "%64emo", "d%65mo", "a%2fb", "demo%00", "ä", "a~", "x".repeat(64), "a b", "*"])(
  "a name that is no DNS label is 404, also encoded: %s",
  async (name) => {
    expectError(await admin("GET", `/pools/${name}`), 404, "not_found");
    expectError(await admin("PUT", `/pools/${name}`, {}), 404, "not_found");
    expectError(await call("POST", `${API}/pools/${name}/lock/acquire`), 404, "not_found");
  },
);

test("a name may have 1 to 63 characters", async () => {
  for (const name of ["a", "0", "a-b", "x".repeat(63)]) expect((await admin("PUT", `/pools/${name}`, {})).status).toBe(201);
});

test("lock and control routes live on the API hosts only; a source's own host and any other are 404", async () => {
  const source = await createSource();
  const headers = { "X-Swarmvia-Key": source.key };
  const hosts = [
    `${source.name}.swarmvia.cloud`,
    "swarmvia.cloud",
    "www.example.com",
    "api.swarmvia.cloud.example.com",
    "xapi.swarmvia.cloud",
    "10.0.0.1",
  ];
  for (const host of hosts) {
    expectError(await call("POST", `https://${host}/pools/${source.name}/lock/acquire`, { headers }), 404, "not_found");
    expectError(await call("GET", `https://${host}/pools`, { headers: { Authorization: `Bearer ${env.ADMIN_TOKEN}` } }), 404, "not_found");
  }
  for (const host of ["https://api.swarmvia.cloud", "https://API.swarmvia.cloud:8443", "http://localhost:8787"]) {
    expect((await call("POST", `${host}/pools/${source.name}/lock/acquire`, { headers })).status).toBe(200);
  }
});

test.each(["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])("%s on a lock endpoint is 405, with Allow: POST", async (method) => {
  const source = await createSource();
  for (const path of LOCK_PATHS(source, "x")) {
    const answer = await call(method, API + path, { headers: { "X-Swarmvia-Key": source.key } });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("Allow")).toBe("POST");
    if (method !== "HEAD") expectError(answer, 405, "method_not_allowed");
  }
});

test.each([
  ["POST", "/pools", "GET, HEAD"],
  ["POST", "/pools/demo", "DELETE, GET, HEAD, PUT"],
  ["PUT", "/pools/demo/slots", "GET, HEAD"],
  ["GET", "/pools/demo/slots/1", "DELETE"],
  ["DELETE", "/pools/demo/keys", "GET, HEAD, POST"],
  ["PATCH", "/pools/demo/keys/0123456789abcdef", "DELETE"],
  ["POST", "/healthz", "GET, HEAD"],
  ["PUT", "/openapi.json", "GET, HEAD"],
])("%s on %s is 405, and Allow says %s", async (method, path, allowed) => {
  const answer = await call(method, API + path);
  expectError(answer, 405, "method_not_allowed");
  expect(answer.headers.get("Allow")?.split(/, ?/).sort().join(", ")).toBe(allowed);
});

test("a query string on a lock endpoint means nothing", async () => {
  const source = await createSource();
  const { slotId } = (await lock(source, "acquire?waitMs=x&limit=0")).body;
  expect((await lock(source, `${slotId}/renew?a=b`)).status).toBe(200);
  expect((await lock(source, `${slotId}/release?`)).body).toEqual({ released: true });
});

test("a body of 64 KiB is taken, declared or not", async () => {
  const source = await createSource();
  for (const body of [padded(LIMIT), chunked(padded(LIMIT))]) {
    const slot = await grant(source, { body });
    expect((await renew(source, slot, { body: "x".repeat(LIMIT) })).status).toBe(200);
    expect((await lock(source, `${slot.slotId}/release`, { body: padded(LIMIT) })).body).toEqual({ released: true });
  }
});

test("a body over 64 KiB is 413, declared or not, on every lock endpoint", async () => {
  const source = await createSource();
  const { slotId } = await grant(source);
  for (const path of LOCK_PATHS(source, slotId)) {
    for (const body of [padded(LIMIT + 1), chunked(padded(LIMIT + 1))]) {
      expectError(await call("POST", API + path, { headers: { "X-Swarmvia-Key": source.key }, body }), 413, "payload_too_large");
    }
  }
  expect(await stateOf(source)).toMatchObject({ inUse: 1, queueDepth: 0 });
});

test("a control route takes 64 KiB too, and no more", async () => {
  const source = await createSource();
  expect((await admin("PUT", `/pools/${source.name}`, padded(LIMIT))).status).toBe(200);
  expectError(await admin("PUT", `/pools/${source.name}`, padded(LIMIT + 1)), 413, "payload_too_large");
  expectError(await admin("POST", `/pools/${source.name}/keys`, padded(LIMIT + 1)), 413, "payload_too_large");
});

test("the method is looked at before the size, a declared size before the key, the key before the body", async () => {
  const source = await createSource();
  const path = `${API}/pools/${source.name}/lock/acquire`;
  const bad = { "X-Swarmvia-Key": "sv_at_x" };
  expectError(await call("PUT", path, { headers: bad, body: padded(LIMIT + 1) }), 405, "method_not_allowed");
  expectError(await call("POST", path, { headers: bad, body: padded(LIMIT + 1) }), 413, "payload_too_large");
  expectError(await call("POST", path, { headers: bad, body: chunked(padded(LIMIT + 1)) }), 401, "unauthorized");
  expectError(await call("POST", path, { headers: { ...bad, "Idempotency-Key": "" }, body: "{" }), 401, "unauthorized");
});

test("a revoked key is refused before the body is looked at", async () => {
  const source = await createSource();
  await admin("DELETE", `/pools/${source.name}/keys/${source.keyId}`);
  expectError(await acquire(source, { body: "{" }), 401, "unauthorized");
  expectError(await lock(source, "x/release", { body: '{"status":1}' }), 401, "unauthorized");
  expectError(await acquire(source, { body: chunked(padded(LIMIT + 1)) }), 401, "unauthorized");
});

test("a refused call takes no slot, no place in the queue and no RPM", async () => {
  const source = await createSource({ rpm: { limit: 5 } });
  const seen = async () => ({ ...(await stateOf(source)), at: undefined, counters: undefined });
  const before = await seen();
  await acquire(source, { key: "sv_at_x", waitMs: 5000 });
  await acquire(source, { body: '{"waitMs":-1}' });
  await acquire(source, { waitMs: 5000, headers: { "X-Swarmvia-Queue-Timeout-Ms": "x" } });
  await acquire(source, { waitMs: 5000, idempotencyKey: "a b" });
  await acquire(source, { body: padded(LIMIT + 1) });
  await call("GET", `${API}/pools/${source.name}/lock/acquire`, { headers: { "X-Swarmvia-Key": source.key } });
  expect(await seen()).toEqual(before);
});

test("healthz and the openapi document need no credentials, and are JSON", async () => {
  expect((await call("GET", `${API}/healthz`)).body).toEqual({ ok: true });
  const { status, body } = await call("GET", `${API}/openapi.json`);
  expect(status).toBe(200);
  expect(body.openapi).toMatch(/^3\.1\.\d+$/);
  expect(Object.keys(body.paths)).toContain("/pools/{source}/lock/acquire");
});
