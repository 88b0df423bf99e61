// How an access key is presented, and what is told to those who have none.

import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import {
  API,
  acquire,
  admin,
  call,
  configure,
  createSource,
  expectError,
  grant,
  mintKey,
  release,
  renew,
  stopClock,
  waiter,
  type Answer,
  type Ask,
  type Source,
} from "./support";

const acquireWith = (source: { name: string }, headers: Record<string, string>) =>
  call("POST", `${API}/pools/${source.name}/lock/acquire`, { headers });

test.each([
  "X-Swarmvia-Key: KEY",
  "Authorization: Bearer KEY",
  "Authorization: bearer KEY",
  "Authorization: BEARER KEY",
  "Authorization: Swarmvia KEY",
  "authorization: sWARMVIA KEY",
])("a key is taken as %s", async (line) => {
  const source = await createSource();
  const [name, value] = line.replace("KEY", source.key).split(": ");
  expect((await acquireWith(source, { [name]: value })).status).toBe(200);
});

test("Authorization is taken only in the schemes that the settings allow, from the next call on", async () => {
  const source = await createSource({ access: { bearer: false } });
  const asBearer = { Authorization: `Bearer ${source.key}` };
  const asSwarmvia = { Authorization: `Swarmvia ${source.key}` };
  expectError(await acquireWith(source, asBearer), 401, "unauthorized");
  expect((await acquireWith(source, asSwarmvia)).status).toBe(200);
  await configure(source, { access: { swarmvia: false } });
  expectError(await acquireWith(source, asSwarmvia), 401, "unauthorized");
  expect((await acquireWith(source, asBearer)).status).toBe(200);
  await configure(source, { access: { bearer: false, swarmvia: false } });
  expectError(await acquireWith(source, asBearer), 401, "unauthorized");
  expectError(await acquireWith(source, asSwarmvia), 401, "unauthorized");
  expect((await acquire(source)).status).toBe(200);
});

test("renew and release check the key as acquire does", async () => {
  const source = await createSource({ access: { bearer: false } });
  const slot = await grant(source);
  for (const headers of [{ "X-Swarmvia-Key": "" }, { "X-Swarmvia-Key": "x" }] as Record<string, string>[]) {
    expectError(await renew(source, slot, { headers }), 401, "unauthorized");
    expectError(await release(source, slot, undefined, { headers }), 401, "unauthorized");
  }
  const path = `${API}/pools/${source.name}/lock/${slot.slotId}`;
  expectError(await call("POST", `${path}/renew`, { headers: { Authorization: `Bearer ${source.key}` } }), 401, "unauthorized");
  expectError(await call("POST", `${path}/release`), 401, "unauthorized");
  expect((await release(source, slot)).body).toEqual({ released: true });
});

test("X-Swarmvia-Key wins when several are present, also when it is bad", async () => {
  const source = await createSource();
  const Authorization = `Bearer ${source.key}`;
  for (const bad of ["", "x", "sv_at_x", "sv_at_a.b.c"])
    expectError(await acquireWith(source, { "X-Swarmvia-Key": bad, Authorization }), 401, "unauthorized");
  expect((await acquireWith(source, { "X-Swarmvia-Key": source.key, Authorization: "Bearer x" })).status).toBe(200);
});

test("anything else is no key", async () => {
  const source = await createSource();
  const body = source.key.slice("sv_at_".length);
  const [head, claims] = body.split(".");
  const none = btoa('{"alg":"none"}').replaceAll("=", "");
  const wrong = [
    "",
    "sv_at_",
    body,
    `${source.key}x`,
    `sv_rt_${body}`,
    source.key.toUpperCase(),
    source.key.slice(0, -2),
    `sv_at_${head}.${claims}.`,
    `sv_at_${none}.${claims}.`,
    `sv_at_${"x".repeat(9000)}`,
    env.ADMIN_TOKEN,
  ];
  for (const key of wrong) expectError(await acquire(source, { key }), 401, "unauthorized");
  for (const Authorization of [
    "",
    "Bearer",
    "Bearer ",
    source.key,
    `Basic ${btoa(`x:${source.key}`)}`,
    `Digest ${source.key}`,
    `Bearer x ${source.key}`,
  ]) {
    expectError(await acquireWith(source, { Authorization }), 401, "unauthorized");
  }
  expectError(await acquireWith(source, {}), 401, "unauthorized");
});

test("a caller with no valid key is told the same, whether the source exists or not, and whatever is wrong", async () => {
  const [source, other] = [await createSource(), await createSource()];
  const nowhere: Source = { ...source, name: "nowhere" };
  const told = ({ status, body, headers }: Answer) => ({
    status,
    body,
    names: [...headers.keys()].sort(),
    challenge: headers.get("WWW-Authenticate"),
  });
  const answers = [
    await acquireWith(source, {}),
    await acquireWith(nowhere, {}),
    await acquire(source, { key: "sv_at_x" }),
    await acquire(nowhere, { key: "sv_at_x" }),
    await acquire(source, { key: other.key }),
    await acquire(nowhere, { key: other.key }),
  ].map(told);
  expect(answers[0]).toMatchObject({ status: 401, body: { error: "unauthorized" }, challenge: expect.stringMatching(/Bearer|Swarmvia/) });
  for (const answer of answers) expect(answer).toEqual(answers[0]);
});

test("whoever holds a key that was good once is told why it isn't any more, and others aren't", async () => {
  const clock = stopClock();
  const [source, ended] = [await createSource(), await createSource()];
  const [short, revoked] = [await mintKey(source, { ttlMs: 1000 }), await mintKey(source)];
  await admin("DELETE", `/pools/${source.name}/keys/${revoked.keyId}`);
  await admin("DELETE", `/pools/${ended.name}`);
  clock.pass(1000);
  const slot = { slotId: "none" };
  // Twice: the second time this isolate knows.
  for (let i = 0; i < 2; i += 1) {
    for (const verb of [acquire, (of: Source, ask: Ask) => renew(of, slot, ask), (of: Source, ask: Ask) => release(of, slot, undefined, ask)]) {
      const message = async (of: Source, key: string) => {
        const answer = await verb(of, { key });
        expectError(answer, 401, "unauthorized");
        expect(answer.headers.get("WWW-Authenticate")).toMatch(/Swarmvia/);
        return answer.body.message;
      };
      expect(await message(source, short.key)).toMatch(/expired/);
      expect(await message(source, revoked.key)).toMatch(/revoked/);
      expect(await message(ended, ended.key)).toMatch(/no longer known/);
      for (const [of, key] of [[source, `${short.key}x`], [source, ended.key], [ended, short.key], [ended, `${ended.key}x`]] as [Source, string][])
        expect(await message(of, key)).toMatch(/^Present a live access key/);
    }
  }
  await configure(ended, {});
  const again = await acquire(ended, { key: ended.key });
  expect([again.status, again.body.message]).toEqual([401, expect.stringMatching(/no longer known/)]);
});

test("an admin token opens no lock endpoint, and an access key no control route", async () => {
  const source = await createSource();
  expectError(await acquireWith(source, { Authorization: `Bearer ${env.ADMIN_TOKEN}` }), 401, "unauthorized");
  expectError(await call("GET", `${API}/pools`, { headers: { Authorization: `Bearer ${source.key}` } }), 401, "unauthorized");
});

test("every control route is 401 without the admin token, before anything else is looked at", async () => {
  const routes = [
    ["GET", ""],
    ["PUT", "/nowhere"],
    ["GET", "/nowhere"],
    ["DELETE", "/nowhere"],
    ["GET", "/nowhere/slots"],
    ["DELETE", "/nowhere/slots/1"],
    ["POST", "/nowhere/keys"],
    ["GET", "/nowhere/keys"],
    ["DELETE", "/nowhere/keys/0123456789abcdef"],
  ];
  const token = env.ADMIN_TOKEN;
  const wrong = [
    "",
    "Bearer",
    `Bearer ${token}x`,
    `Bearer ${token.slice(0, -1)}`,
    `Bearer x${token}`,
    `Basic ${token}`,
    token,
    `Bearer ${token.toUpperCase()}`,
    `Bearer ${token},${token}`,
  ];
  for (const [method, path] of routes) {
    for (const Authorization of wrong) {
      const answer = await call(method, `${API}/pools${path}`, {
        headers: { Authorization },
        body: method === "PUT" || method === "POST" ? "{" : undefined,
      });
      expectError(answer, 401, "unauthorized");
      expect(answer.headers.get("WWW-Authenticate")).toMatch(/Bearer/);
    }
  }
  expectError(await admin("GET", "/pools/nowhere"), 404, "not_found");
});

test("no answer to a holder or an operator shows the admin token, a signing key or an access key again", async () => {
  const source = await createSource();
  const slot = await grant(source);
  const path = `/pools/${source.name}`;
  const answers = [
    await renew(source, slot),
    await acquire(source, { key: `${source.key}x` }),
    await admin("GET", path),
    await admin("GET", "/pools"),
    await admin("GET", `${path}/keys`),
    await admin("GET", `${path}/slots`),
  ];
  const text = JSON.stringify(answers.map(({ body, headers }) => [body, [...headers]]));
  for (const secret of [env.ADMIN_TOKEN, env.SIGNING_KEYS.split(":")[1], source.key, source.key.split(".")[2], slot.slotId])
    expect(text).not.toContain(secret);
});

test("who waits is told what became of its key, too", async () => {
  const source = await createSource({ concurrency: { limit: 1, max: 1 } });
  await grant(source);
  const [short, revoked, kept] = [await mintKey(source, { ttlMs: 1000 }), await mintKey(source), await mintKey(source)];
  const waiting = [];
  for (const { key } of [revoked, kept, short]) waiting.push((await waiter(source, { key })).answer);
  const [first, second, third] = waiting as [Promise<Answer>, Promise<Answer>, Promise<Answer>];
  await admin("DELETE", `/pools/${source.name}/keys/${revoked.keyId}`);
  expectError(await first, 401, "unauthorized", { message: expect.stringMatching(/was revoked/) });
  expectError(await third, 401, "unauthorized", { message: expect.stringMatching(/has expired/) });
  await admin("DELETE", `/pools/${source.name}`);
  expectError(await second, 401, "unauthorized", { message: expect.stringMatching(/no longer known/) });
});
