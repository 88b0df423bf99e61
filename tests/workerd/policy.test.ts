// A policy that changes between two calls of one warm isolate: out on the very next call, in within a second;
// and callers who are refused at the door don't load the object.

import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { acquire, admin, API, call, configure, createSource, expectError, mintKey, release, renew, stopClock, type Answer, type Ask, type Source } from "./support";

const HERE = "192.0.2.1";
const THERE = "198.51.100.1";

const from = (address: string, ask: Ask = {}): Ask => ({ ...ask, headers: { ...ask.headers, "CF-Connecting-IP": address } });
const allow = (source: Source, ipAllowlist: string[]) => configure(source, { access: { ipAllowlist } });
const expectForbidden = (answer: Answer) => expectError(answer, 403, "unauthorized");

/** Counts the calls to the objects of sources from now on. */
function countObjectCalls(): { calls: number } {
  const counter = { calls: 0 };
  const prototype = Object.getPrototypeOf(env.SOURCES.getByName("any"));
  const real = prototype.fetch;
  vi.spyOn(prototype, "fetch").mockImplementation(function (this: unknown, ...args: unknown[]) {
    counter.calls += 1;
    return real.apply(this, args);
  });
  return counter;
}

afterEach(() => {
  vi.restoreAllMocks();
});

test("a removed address is out on the very next call, for acquire, renew and release alike", async () => {
  const source = await createSource({ access: { ipAllowlist: [`${HERE}/32`] } });
  const slot = (await acquire(source, from(HERE))).body;
  expect(slot.slotId).toBeTruthy();
  expect((await renew(source, slot, from(HERE))).status).toBe(200);
  await allow(source, [THERE]);
  expectForbidden(await acquire(source, from(HERE)));
  expectForbidden(await renew(source, slot, from(HERE)));
  expectForbidden(await release(source, slot, undefined, from(HERE)));
  expect((await release(source, slot, undefined, from(THERE))).body).toEqual({ released: true });
});

test("an added address is in within a second", async () => {
  const clock = stopClock();
  const source = await createSource({ access: { ipAllowlist: [HERE] } });
  expectForbidden(await acquire(source, from(THERE)));
  await allow(source, [HERE, THERE]);
  clock.pass(1000);
  expect((await acquire(source, from(THERE))).status).toBe(200);
});

test("a policy set on a source that had none holds on the very next call", async () => {
  const source = await createSource();
  expect((await acquire(source, from(THERE))).status).toBe(200);
  await allow(source, [HERE]);
  expectForbidden(await acquire(source, from(THERE)));
  expect((await acquire(source, from(HERE))).status).toBe(200);
});

test("a policy taken away lets all in within a second", async () => {
  const clock = stopClock();
  const source = await createSource({ access: { ipAllowlist: [HERE] } });
  expectForbidden(await acquire(source, from(THERE)));
  await allow(source, []);
  clock.pass(1000);
  expect((await acquire(source, from(THERE))).status).toBe(200);
});

test("no address and an allowlist is 403", async () => {
  const source = await createSource({ access: { ipAllowlist: ["0.0.0.0/0", "::/0"] } });
  expectForbidden(await acquire(source));
  expectForbidden(await acquire(source, from("not an address")));
  expect((await acquire(source, from("2001:db8::1"))).status).toBe(200);
});

test("X-Forwarded-For is never looked at", async () => {
  const source = await createSource({ access: { ipAllowlist: [HERE] } });
  expectForbidden(await acquire(source, from(THERE, { headers: { "X-Forwarded-For": HERE, "X-Real-IP": HERE } })));
});

test("a bad key is 401 before the address is looked at", async () => {
  const source = await createSource({ access: { ipAllowlist: [HERE] } });
  expectError(await acquire(source, from(THERE, { key: "garbage" })), 401, "unauthorized");
  const dead = await mintKey(source);
  await admin("DELETE", `/pools/${source.name}/keys/${dead.keyId}`);
  expectError(await acquire(source, from(THERE, { key: dead.key })), 401, "unauthorized");
});

test("a key that was revoked, or whose source was ended, is 401 from wherever it comes, on the very next call", async () => {
  stopClock();
  const source = await createSource({ access: { ipAllowlist: [HERE] } });
  const other = await mintKey(source);
  for (const key of [source.key, other.key]) expectForbidden(await acquire(source, from(THERE, { key })));
  await admin("DELETE", `/pools/${source.name}/keys/${other.keyId}`);
  expectError(await acquire(source, from(THERE, { key: other.key })), 401, "unauthorized");
  expectForbidden(await acquire(source, from(THERE)));
  await admin("DELETE", `/pools/${source.name}`);
  expectError(await acquire(source, from(THERE)), 401, "unauthorized");
});

test("a revoked key is out on the very next call, and soon costs no object call", async () => {
  const source = await createSource();
  const key = await mintKey(source);
  expect((await acquire(source, { key: key.key })).status).toBe(200);
  await admin("DELETE", `/pools/${source.name}/keys/${key.keyId}`);
  expectError(await acquire(source, { key: key.key }), 401, "unauthorized");
  const counter = countObjectCalls();
  for (let i = 0; i < 50; i += 1) expectError(await acquire(source, { key: key.key }), 401, "unauthorized");
  // The batch of the log at most.
  expect(counter.calls).toBeLessThanOrEqual(2);
});

test("callers refused by the policy, or with garbage, hardly load the object", async () => {
  stopClock();
  const source = await createSource({ access: { ipAllowlist: [HERE] } });
  expectForbidden(await acquire(source, from(THERE)));
  const counter = countObjectCalls();
  for (let i = 0; i < 100; i += 1) {
    expectForbidden(await acquire(source, from(THERE)));
    expectError(await acquire(source, { key: `garbage-${i}` }), 401, "unauthorized");
  }
  // Whether the key is alive, ten times a second; and the batch of the log.
  expect(counter.calls).toBeLessThanOrEqual(10 + 1);
  const refused = counter.calls;
  expect((await acquire(source, from(HERE))).status).toBe(200);
  expect(counter.calls).toBeGreaterThan(refused);
});

test("a carrier that was switched off is out on the very next call", async () => {
  const source = await createSource();
  const viaBearer = () =>
    call("POST", `${API}/pools/${source.name}/lock/acquire`, { headers: { Authorization: `Bearer ${source.key}` } });
  expect((await viaBearer()).status).toBe(200);
  await configure(source, { access: { bearer: false } });
  expectError(await viaBearer(), 401, "unauthorized");
});
