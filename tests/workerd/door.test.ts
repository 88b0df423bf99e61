// The whole door: whatever an acquire meets there, it has one entry in the log and one count, and its answer is that of
// the first check it fails. Each check beside each malformed part, to an isolate that knows the policy and to one that doesn't.

import { beforeAll, expect, test, vi } from "vitest";
import { acquire, admin, API, call, configure, createSource, mintKey, stateOf, stopClock, type Answer, type Source } from "./support";
import { makeSigner, type Signer } from "./tokens";

const HERE = "192.0.2.1";
const THERE = "198.51.100.1";

interface Sent {
  headers: Record<string, string>;
  body?: BodyInit;
}

interface Case {
  source: Source;
  /** What is shown, and where it comes from. */
  headers: Record<string, string>;
  /** Whether the entry names the key. */
  isNamed: boolean;
  keyId?: string;
}

const stream = (bytes: number) =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array(bytes));
      controller.close();
    },
  });

/** What is malformed, and what it comes to where the caller is let in. */
const PARTS: Record<string, [Partial<Sent>, number, string]> = {
  "nothing": [{}, 200, "granted"],
  "a body that isn't JSON": [{ body: "{" }, 400, "invalid_request"],
  "a field": [{ body: '{"waitMs":-1}' }, 400, "invalid_request"],
  "an idempotency key": [{ headers: { "Idempotency-Key": "a b" } }, 400, "invalid_request"],
  "a queue time-out": [{ headers: { "X-Swarmvia-Queue-Timeout-Ms": "soon" }, body: "" }, 400, "invalid_request"],
  "an undeclared body": [{ body: stream(0) }, 400, "invalid_request"],
  "a body whose size shows late": [{ body: stream(0) }, 413, "payload_too_large"],
  "several at once": [{ headers: { "Idempotency-Key": "a b" }, body: "[" }, 400, "invalid_request"],
};

const KEY = "X-Swarmvia-Key";
const made = async (settings: object = {}) => createSource({ log: { keep: 1000 }, ...settings });
const of = (source: Source, key = source.key, more: Record<string, string> = {}): Case => ({
  source,
  headers: { [KEY]: key, "CF-Connecting-IP": HERE, ...more },
  isNamed: true,
  keyId: source.keyId,
});

let signer: Signer;
beforeAll(async () => {
  signer = await makeSigner("ES256");
});

/** How a caller fails at a check, the status that this is, and an expression of what it is told. */
const CHECKS: Record<string, [() => Promise<Case>, number, RegExp | undefined]> = {
  "none": [async () => of(await made()), 200, undefined],
  "none, of a policy": [async () => of(await made({ access: { ipAllowlist: [HERE] } })), 200, undefined],
  "no key": [async () => ({ source: await made(), headers: {}, isNamed: false }), 401, /^Present a live access key/],
  "garbage": [async () => ({ ...of(await made(), "sv_at_x"), isNamed: false }), 401, /^Present a live access key/],
  "another source's key": [async () => ({ ...of(await made(), (await made()).key), isNamed: false }), 401, /^Present a live access key/],
  "an expired key": [
    async () => {
      const clock = stopClock();
      const source = await made();
      const { key, keyId } = await mintKey(source, { ttlMs: 1000 });
      clock.pass(1000);
      return { ...of(source, key), keyId };
    },
    401,
    /expired/,
  ],
  "a revoked key": [
    async () => {
      const source = await made();
      await admin("DELETE", `/pools/${source.name}/keys/${source.keyId}`);
      return of(source);
    },
    401,
    /revoked/,
  ],
  "a revoked key, from elsewhere": [
    async () => {
      const source = await made({ access: { ipAllowlist: [THERE] } });
      const other = await mintKey(source);
      await acquire(source, { key: other.key, headers: { "CF-Connecting-IP": THERE } });
      await admin("DELETE", `/pools/${source.name}/keys/${source.keyId}`);
      return of(source);
    },
    401,
    /revoked/,
  ],
  "a key of a source that was made anew": [
    async () => {
      const source = await made();
      await admin("DELETE", `/pools/${source.name}`);
      await configure(source, {});
      return of(source);
    },
    401,
    /no longer known/,
  ],
  "a scheme": [
    async () => {
      const source = await made({ access: { bearer: false } });
      return { ...of(source), headers: { Authorization: `Bearer ${source.key}` } };
    },
    401,
    /^Present a live access key/,
  ],
  "a scheme, of a policy": [
    async () => {
      const source = await made({ access: { swarmvia: false, ipAllowlist: [HERE] } });
      return { ...of(source), headers: { Authorization: `Swarmvia ${source.key}`, "CF-Connecting-IP": HERE } };
    },
    401,
    /^Present a live access key/,
  ],
  "the address": [async () => of(await made({ access: { ipAllowlist: [THERE] } })), 403, /allowlist/],
  "no address": [
    async () => {
      const source = await made({ access: { ipAllowlist: [THERE] } });
      return { ...of(source), headers: { [KEY]: source.key } };
    },
    403,
    /allowlist/,
  ],
  "a JWT": [async () => of(await made({ access: { jwt: { issuer: "i", audience: "a", jwks: { keys: [signer.jwk] } } } })), 401, /valid token/],
  "Access": [
    async () => of(await made({ access: { cloudflareAccess: { teamDomain: "team.cloudflareaccess.com", audience: "a".repeat(64) } } })),
    401,
    /valid token/,
  ],
};

function send(one: Case, part: string): Promise<Answer> {
  const [sent] = PARTS[part]!;
  let { body } = sent;
  if (part === "an undeclared body") body = stream(10);
  if (part === "a body whose size shows late") body = stream(70_000);
  return call("POST", `${API}/pools/${one.source.name}/lock/acquire`, { headers: { ...one.headers, ...sent.headers }, body });
}

const countOf = async (source: Source) => {
  const { acquires } = (await stateOf(source)).counters as { acquires: Record<string, number> };
  return Object.values(acquires).reduce((sum, count) => sum + count, 0);
};

async function entriesOf(source: Source, query = ""): Promise<any[]> {
  return (await admin("GET", `/pools/${source.name}/log?limit=1000${query}`)).body.entries;
}

/** Until the log has so many, and then no more. */
const untilLogged = (source: Source, count: number) =>
  vi.waitFor(async () => expect((await entriesOf(source)).length).toBeGreaterThanOrEqual(count), { timeout: 3000, interval: 50 });

test.each(Object.keys(CHECKS))("an acquire that fails at %s has one entry and one count, whatever else is wrong with it", async (check) => {
  const [begin, status, says] = CHECKS[check]!;
  const parts = Object.keys(PARTS);
  // Known: the first of them has taught the isolate; unknown: each meets a source of its own.
  const known = await begin();
  const rounds: [Case, string[]][] = [[known, parts]];
  for (const part of parts) rounds.push([await begin(), [part]]);
  const checks: (() => Promise<void>)[] = [];
  for (const [one, sent] of rounds) {
    const before = await entriesOf(one.source);
    const counted = await countOf(one.source);
    const expected: [string | null, number, string][] = [];
    for (const part of sent) {
      const [, ifLetIn, outcome] = PARTS[part]!;
      const answer = await send(one, part);
      const wanted = status === 200 ? ifLetIn : status;
      expect({ part, status: answer.status }).toEqual({ part, status: wanted });
      if (says) expect(answer.body.message).toMatch(says);
      expected.push([answer.headers.get("x-swarmvia-request-id"), wanted, status === 200 ? outcome : "unauthorized"]);
    }
    checks.push(async () => {
      await untilLogged(one.source, before.length + sent.length);
      const entries = (await entriesOf(one.source)).slice(0, -before.length || undefined);
      const told = entries.map(({ requestId, status, outcome }) => [requestId, status, outcome]);
      expect(told.sort()).toEqual(expected.sort());
      for (const entry of entries) expect(entry.keyId).toBe(one.isNamed ? one.keyId : undefined);
      if (one.isNamed) expect(await entriesOf(one.source, `&keyId=${one.keyId}`)).toEqual(expect.arrayContaining(entries));
      expect(await countOf(one.source)).toBe(counted + sent.length);
    });
  }
  for (const check of checks) await check();
});

test("a body that is declared too large comes before the key, and is an entry all the same", async () => {
  const source = await made();
  const body = "x".repeat(70_000);
  const ids: (string | null)[] = [];
  for (const key of [source.key, "garbage"]) {
    const answer = await acquire(source, { key, body });
    expect(answer.status).toBe(413);
    ids.push(answer.headers.get("x-swarmvia-request-id"));
  }
  await untilLogged(source, 2);
  const told = (await entriesOf(source)).map(({ requestId, outcome }) => [requestId, outcome]);
  expect(told.sort()).toEqual(ids.map((id) => [id, "payload_too_large"]).sort());
  expect(await countOf(source)).toBe(2);
});

test("a policy that changes between the calls costs no entry and makes none", async () => {
  const source = await made({ access: { ipAllowlist: [HERE] } });
  const sent: [string | null, number][] = [];
  for (let i = 0; i < 12; i += 1) {
    // In turn: let in, shut out by address, by scheme.
    await configure(source, { access: { bearer: i % 3 !== 2, ipAllowlist: [i % 3 === 1 ? THERE : HERE] }, concurrency: { limit: 100 } });
    const headers = { Authorization: `Bearer ${source.key}`, "CF-Connecting-IP": HERE };
    const body = i % 2 === 0 ? "" : "{";
    const answer = await call("POST", `${API}/pools/${source.name}/lock/acquire`, { headers, body });
    expect(answer.status).toBe([body === "" ? 200 : 400, 403, 401][i % 3]);
    sent.push([answer.headers.get("x-swarmvia-request-id"), answer.status]);
  }
  await untilLogged(source, sent.length);
  const told = (await entriesOf(source)).map(({ requestId, status }) => [requestId, status]);
  expect(told.sort()).toEqual(sent.sort());
  expect(await countOf(source)).toBe(sent.length);
});

test("many at once at every check are all counted, one by one or as omitted", async () => {
  const source = await made({ access: { ipAllowlist: [HERE] } });
  const dead = await mintKey(source);
  await admin("DELETE", `/pools/${source.name}/keys/${dead.keyId}`);
  const keys = [source.key, dead.key, "garbage"];
  const calls = Array.from({ length: 240 }, (_, i) => acquire(source, { key: keys[i % 3], headers: { "CF-Connecting-IP": THERE } }));
  for (const [i, answer] of (await Promise.all(calls)).entries()) expect(answer.status).toBe([403, 401, 401][i % 3]);
  await vi.waitFor(async () => expect(await countOf(source)).toBe(240), { timeout: 3000, interval: 50 });
  const entries = await entriesOf(source);
  expect(entries.reduce((sum, { count = 1 }) => sum + count, 0)).toBe(240);
});
