// A policy that changes between two calls of one warm isolate: out on the very next call, in within a second;
// and callers who are refused at the door don't load the object.

import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import {
  acquire,
  admin,
  API,
  call,
  configure,
  createSource,
  expectError,
  free,
  grant,
  granted,
  isOpen,
  mintKey,
  release,
  renew,
  stateOf,
  stopClock,
  untilDepth,
  waiter,
  type Answer,
  type Ask,
  type Source,
} from "./support";
import { AUDIENCE, claims, HEADER, ISSUER, makeSigner, token } from "./tokens";

const HERE = "192.0.2.1";
const THERE = "198.51.100.1";

const from = (address: string, ask: Ask = {}): Ask => ({ ...ask, headers: { ...ask.headers, "CF-Connecting-IP": address } });
const allow = (source: Source, ipAllowlist: string[]) => configure(source, { access: { ipAllowlist } });
const expectForbidden = (answer: Answer) => expectError(answer, 403, "unauthorized");

/** Counts the calls to objects from now on, or those of one kind. */
function countObjectCalls(kind = ""): { calls: number } {
  const counter = { calls: 0 };
  const prototype = Object.getPrototypeOf(env.SOURCES.getByName("any"));
  const real = prototype.fetch;
  vi.spyOn(prototype, "fetch").mockImplementation(function (this: unknown, ...args: unknown[]) {
    if (String(args[0]).includes(kind)) counter.calls += 1;
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

/** How attempts from this address are in the log. */
async function logged(source: Source, ip: string): Promise<any[]> {
  const { body } = await admin("GET", `/pools/${source.name}/log`);
  return body.entries.filter((entry: any) => entry.ip === ip).map(({ status, outcome }: any) => [status, outcome]);
}

test("a waiter whose address is shut out gets 403 at once, one entry in the log, and the others keep their places", async () => {
  const one = { concurrency: { limit: 1 } };
  const source = await createSource(one);
  const slot = await grant(source, from(HERE));
  const out = await waiter(source, from(THERE));
  const stays = await waiter(source, from(HERE));
  const nowhere = await waiter(source);
  const last = await waiter(source, from(HERE));
  await configure(source, { ...one, access: { ipAllowlist: [HERE] } });
  expectForbidden(await out.answer);
  expectForbidden(await nowhere.answer);
  expect(await logged(source, THERE)).toEqual([[403, "unauthorized"]]);
  expect((await stateOf(source)).queueDepth).toBe(2);
  expect((await release(source, slot, undefined, from(HERE))).status).toBe(200);
  const next = granted(await stays.answer);
  expect(await isOpen(last.answer, 50)).toBe(true);
  await release(source, next, undefined, from(HERE));
  granted(await last.answer);
});

test("a waiter whose carrier was switched off gets 401 at once", async () => {
  const one = { concurrency: { limit: 1 } };
  const source = await createSource(one);
  await grant(source);
  const url = `${API}/pools/${source.name}/lock/acquire`;
  const headers = { Authorization: `Bearer ${source.key}`, "CF-Connecting-IP": THERE };
  const out = call("POST", url, { headers, body: '{"waitMs":10000}' });
  await untilDepth(source, 1);
  const stays = await waiter(source);
  await configure(source, { ...one, access: { bearer: false } });
  expectError(await out, 401, "unauthorized");
  expect(await isOpen(stays.answer, 50)).toBe(true);
  expect(await logged(source, THERE)).toEqual([[401, "unauthorized"]]);
});

test("where a token is asked for newly, waiters show theirs or go: in order, each logged once", async () => {
  const one = { concurrency: { limit: 1 } };
  const source = await createSource(one);
  const signer = await makeSigner("EdDSA");
  const jwt = { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [signer.jwk] } };
  const shown = { [HEADER]: await token(signer, claims()) };
  const slot = await grant(source);
  const first = await waiter(source, { headers: shown });
  const out = await waiter(source, from(THERE));
  const second = await waiter(source, { headers: shown });
  await configure(source, { ...one, access: { jwt } });
  expectError(await out.answer, 401, "unauthorized");
  await untilDepth(source, 2);
  expect((await release(source, slot, undefined, { headers: shown })).status).toBe(200);
  const next = granted(await first.answer);
  expect(await isOpen(second.answer, 50)).toBe(true);
  await release(source, next, undefined, { headers: shown });
  granted(await second.answer);
  await expect.poll(() => logged(source, THERE)).toEqual([[401, "unauthorized"]]);
  const { body } = await admin("GET", `/pools/${source.name}/log`);
  expect(body.entries.filter(({ outcome }: any) => outcome === "granted")).toHaveLength(3);
});

test("a policy that is loosened disturbs nobody who waits", async () => {
  const one = { concurrency: { limit: 1 } };
  const source = await createSource({ ...one, access: { ipAllowlist: [HERE] } });
  await grant(source, from(HERE));
  const waiting = await waiter(source, from(HERE));
  const counter = countObjectCalls("/lock/acquire");
  await configure(source, { ...one, access: { ipAllowlist: [HERE, THERE] } });
  await configure(source, one);
  expect(await isOpen(waiting.answer, 100)).toBe(true);
  expect(counter.calls).toBe(0);
});

test("however often the policy changes, who waits long enough in between is not given up", { timeout: 20_000 }, async () => {
  const one = { concurrency: { limit: 1 } };
  const source = await createSource(one);
  const signer = await makeSigner("EdDSA");
  const jwks = { keys: [signer.jwk] };
  const slot = await grant(source);
  const shown = { [HEADER]: await token(signer, claims({ aud: [0, 1, 2, 3, 4, 5, 6].map(String) })) };
  const waiting = await waiter(source, { headers: shown, waitMs: 30_000 });
  for (let i = 0; i < 7; i += 1) {
    await configure(source, { ...one, access: { jwt: { issuer: ISSUER, audience: String(i), jwks } } });
    await untilDepth(source, 1);
    expect(await isOpen(waiting.answer, 1_050)).toBe(true);
  }
  await release(source, slot, undefined, { headers: shown });
  granted(await waiting.answer);
});
