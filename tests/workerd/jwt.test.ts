// A JWT that a source asks for: right ones are in, all others out with 401, whatever the key set's server does.

import { expect, test } from "vitest";
import { acquire, admin, configure, expectError, grant, release, renew, stopClock } from "./support";
import {
  acquireWith,
  AUDIENCE,
  base64url,
  claims,
  encode,
  expectIn,
  expectOut,
  guarded,
  HEADER,
  ISSUER,
  makeSigner,
  publish,
  PublishedSet,
  seconds,
  sourceWith,
  token,
  type Algorithm,
  type Signer,
} from "./tokens";

const ALGORITHMS: Algorithm[] = ["RS256", "ES256", "EdDSA"];

// One of each, since making them takes time.
const signers = Object.fromEntries(await Promise.all(ALGORITHMS.map(async (alg) => [alg, await makeSigner(alg)]))) as Record<Algorithm, Signer>;
const { RS256, ES256, EdDSA } = signers;

test.each(ALGORITHMS)("a right token is in: %s", async (alg) => {
  const right = await token(signers[alg], claims());
  await expectIn(await guarded(await publish(signers[alg])), right);
  const jwks = { keys: [EdDSA.jwk, ES256.jwk, RS256.jwk] };
  await expectIn(await sourceWith({ jwt: { issuer: ISSUER, audience: AUDIENCE, jwks } }), right);
});

test("a right token has one audience of several, and may be a little early or late", async () => {
  const source = await guarded(await publish(EdDSA));
  for (const more of [{ aud: ["other", AUDIENCE] }, { exp: seconds(-20) }, { nbf: seconds(20) }, { exp: seconds(86_400) }])
    await expectIn(source, await token(EdDSA, claims(more)));
});

test.each<[string, object]>([
  ["of another issuer", { iss: "https://idp.example" }],
  ["without an issuer", { iss: undefined }],
  ["for another audience", { aud: "other" }],
  ["for other audiences", { aud: ["other", "locks2"] }],
  ["without an audience", { aud: undefined }],
  ["that is expired", { exp: seconds(-31) }],
  ["without an end", { exp: undefined }],
  ["that is not yet valid", { nbf: seconds(40) }],
  ["with an end that is no number", { exp: String(seconds(300)) }],
  ["with an end out of this world", { exp: 1e300 }],
])("a token %s is out", async (_, more) => {
  const set = await publish(RS256, ES256, EdDSA);
  const source = await guarded(set);
  for (const alg of ALGORITHMS) {
    await expectOut(source, await token(signers[alg], claims(more)));
    await expectIn(source, await token(signers[alg], claims()));
  }
});

test.each(ALGORITHMS)("a token with a wrong signature is out: %s", async (alg) => {
  const source = await guarded(await publish(signers[alg]));
  const other = await makeSigner(alg);
  await expectOut(source, await token(other, claims()));
  const right = await token(signers[alg], claims());
  const [header, , signature] = right.split(".");
  await expectOut(source, `${header}.${encode(claims({ sub: "admin" }))}.${signature}`);
  await expectOut(source, `${header}.${encode(claims())}.`);
  await expectIn(source, right);
});

test.each(ALGORITHMS)("the algorithm comes from the key, never from the token: %s", async (alg) => {
  const signer = signers[alg];
  const source = await guarded(await publish(signer));
  for (const said of ["none", "None", "", "HS256", "RS512", "PS256", "ES384", ...ALGORITHMS.filter((other) => other !== alg)])
    await expectOut(source, await token(signer, claims(), { alg: said }));
  await expectOut(source, `${encode({ alg: "none", kid: signer.kid })}.${encode(claims())}.`);
  await expectIn(source, await token(signer, claims()));
});

test.each(ALGORITHMS)("HS256 with the public key as secret is out: %s", async (alg) => {
  const { jwk, kid } = signers[alg];
  const source = await guarded(await publish(signers[alg]));
  const text = new TextEncoder();
  const secrets = [JSON.stringify(jwk), JSON.stringify({ keys: [jwk] }), String(jwk.n ?? jwk.x)];
  for (const secret of secrets) {
    const key = await crypto.subtle.importKey("raw", text.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const message = `${encode({ alg: "HS256", kid })}.${encode(claims())}`;
    const signature = await crypto.subtle.sign("HMAC", key, text.encode(message));
    await expectOut(source, `${message}.${base64url(new Uint8Array(signature))}`);
  }
});

test("a token that asks for an extension, or brings its own key, is out", async () => {
  const source = await guarded(await publish(EdDSA));
  const stranger = await makeSigner("EdDSA", "stranger");
  await expectOut(source, await token(EdDSA, claims(), { crit: ["exp"] }));
  await expectOut(source, await token(stranger, claims(), { jwk: stranger.jwk }));
  const elsewhere = await publish(stranger);
  await expectOut(source, await token(stranger, claims(), { jku: elsewhere.url, x5u: elsewhere.url }));
  expect(await elsewhere.hits()).toBe(0);
});

test("no token, or what is none, is out", async () => {
  const source = await guarded(await publish(EdDSA));
  const right = await token(EdDSA, claims());
  const long = await token(EdDSA, claims({ pad: "x".repeat(8192) }));
  for (const shown of [undefined, "", "x", "..", "a.b.c", `Bearer ${right}`, `${right}, ${right}`, `${right}.x`, "a".repeat(20_000), long])
    await expectOut(source, shown);
  await expectOut(source, right, "Authorization");
  await expectIn(source, right);
});

test("a token that is signed but nested as deep as fits does no harm", async () => {
  const source = await guarded(await publish(EdDSA));
  for (const depth of [100, 126, 127, 128, 2000]) {
    const deep = JSON.parse("[".repeat(depth) + "]".repeat(depth));
    for (const shown of [await token(EdDSA, claims({ deep })), await token(EdDSA, claims({ aud: deep })), await token(EdDSA, claims(), { deep })])
      expect([200, 401]).toContain((await acquireWith(source, shown)).status);
  }
  await expectIn(source, await token(EdDSA, claims()));
});

test("renew and release check it as acquire does", async () => {
  const source = await guarded(await publish(EdDSA));
  const headers = { [HEADER]: await token(EdDSA, claims()) };
  const slot = await grant(source, { headers });
  expectError(await renew(source, slot), 401, "unauthorized");
  expectError(await release(source, slot), 401, "unauthorized");
  expect((await renew(source, slot, { headers })).status).toBe(200);
  expect((await release(source, slot, undefined, { headers })).body).toEqual({ released: true });
});

test("the header is the one that the settings say", async () => {
  const clock = stopClock();
  const set = await publish(EdDSA);
  const right = await token(EdDSA, claims());
  const source = await guarded(set, { header: "X-Team-Token" });
  await expectIn(source, right, "x-team-token");
  await expectOut(source, right);
  const jwt = { issuer: ISSUER, audience: AUDIENCE, jwksUrl: set.url, header: "Authorization" };
  expectError(await configure(source, { access: { jwt } }), 400, "invalid_request", { field: "access.jwt.header" });
  await configure(source, { access: { bearer: false, jwt } });
  clock.pass(1000);
  await expectIn(source, `Bearer ${right}`, "Authorization");
  await expectOut(source, right, "Authorization");
});

test("a token that is good for one source is not good for another", async () => {
  const set = await publish(EdDSA);
  const [here, there] = [await guarded(set), await guarded(set, { audience: "other" })];
  const right = await token(EdDSA, claims());
  await expectIn(here, right);
  await expectOut(there, right);
  await expectIn(there, await token(EdDSA, claims({ aud: "other" })));
  await expectIn(here, right);
});

test("another policy doesn't take what the one before it took", async () => {
  const set = await publish(EdDSA);
  const source = await guarded(set);
  const right = await token(EdDSA, claims());
  await expectIn(source, right);
  await configure(source, { access: { jwt: { issuer: ISSUER, audience: "other", jwksUrl: set.url } } });
  await expectOut(source, right);
});

test("a token is out when it expires, also one that was found good before", async () => {
  const clock = stopClock();
  const source = await guarded(await publish(EdDSA));
  const right = await token(EdDSA, claims({ exp: seconds(60) }));
  await expectIn(source, right);
  clock.pass(89_000);
  await expectIn(source, right);
  clock.pass(1_000);
  await expectOut(source, right);
});

test("an unknown key is out, and fetches the set at most once a minute", async () => {
  const clock = stopClock();
  const set = await publish(EdDSA);
  const source = await guarded(set);
  await expectIn(source, await token(EdDSA, claims()));
  expect(await set.hits()).toBe(1);
  for (let kid = 0; kid < 5; kid += 1) await expectOut(source, await token(EdDSA, claims(), { kid: `made-up-${kid}` }));
  expect(await set.hits()).toBe(2);
  clock.pass(60_000);
  await expectOut(source, await token(EdDSA, claims(), { kid: "made-up" }));
  await expectIn(source, await token(EdDSA, claims()));
  expect(await set.hits()).toBe(3);
});

test.each(ALGORITHMS)("without a name, a token is in by any key of its algorithm: %s", async (alg) => {
  const nameless = await token(signers[alg], claims(), { kid: undefined });
  const other = await makeSigner(alg, "other");
  await expectIn(await guarded(await publish(signers[alg])), nameless);
  await expectIn(await guarded(await publish(RS256, ES256, EdDSA)), nameless);
  await expectIn(await guarded(await publish(other, RS256, ES256, EdDSA)), nameless);
  const jwks = { keys: [other.jwk, EdDSA.jwk, ES256.jwk, RS256.jwk].map((jwk) => ({ ...jwk, kid: undefined })) };
  await expectIn(await sourceWith({ jwt: { issuer: ISSUER, audience: AUDIENCE, jwks } }), nameless);
  await expectOut(await guarded(await publish(other)), nameless);
});

test("EdDSA goes by both its names, in the token and in the key", async () => {
  for (const said of ["EdDSA", "Ed25519"]) {
    const jwks = { keys: [{ ...EdDSA.jwk, alg: said }] };
    const source = await sourceWith({ jwt: { issuer: ISSUER, audience: AUDIENCE, jwks } });
    for (const alg of ["EdDSA", "Ed25519"]) await expectIn(source, await token(EdDSA, claims(), { alg }));
    await expectOut(source, await token(ES256, claims(), { alg: said }));
  }
});

test("a token that is too long is out, and the message names its header and the bound", async () => {
  const source = await guarded(await publish(EdDSA), { header: "X-Team-Token" });
  const long = await token(EdDSA, claims({ pad: "x".repeat(8192) }));
  const answer = await acquireWith(source, long, "X-Team-Token");
  expectError(answer, 401, "unauthorized");
  expect(answer.body.message).toMatch(/X-Team-Token.*8,192 bytes/);
  expect((await acquireWith(source, "a".repeat(8192), "X-Team-Token")).body.message).not.toMatch(/8,192/);
});

test("a rotated set: the new key is in at once, the old one out when the set is stale", async () => {
  const clock = stopClock();
  const [old, fresh] = [await makeSigner("ES256", "old"), await makeSigner("ES256", "new")];
  const set = await new PublishedSet().holds([old], { "Cache-Control": "public, max-age=120" });
  const source = await guarded(set);
  const [byOld, byNew] = [await token(old, claims({ exp: seconds(3600) })), await token(fresh, claims({ exp: seconds(3600) }))];
  await expectIn(source, byOld);
  await set.holds([old, fresh], { "Cache-Control": "public, max-age=120" });
  await expectIn(source, byNew);
  await expectIn(source, byOld);
  await set.holds([fresh]);
  clock.pass(119_000);
  await expectIn(source, byOld);
  clock.pass(1_000);
  await expectOut(source, byOld);
  await expectIn(source, byNew);
});

test.each<[string, Record<string, string>, number]>([
  ["as long as its server says", { "Cache-Control": "max-age=300" }, 300],
  ["for ten minutes if it doesn't", {}, 600],
  ["for an hour at most", { "Cache-Control": "max-age=86400" }, 3600],
  ["for a minute at least", { "Cache-Control": "no-store" }, 60],
])("a set is kept %s", async (_, headers, lifetime) => {
  const clock = stopClock();
  const set = await new PublishedSet().holds([EdDSA], headers);
  const source = await guarded(set);
  const right = await token(EdDSA, claims({ exp: seconds(86_400) }));
  for (let call = 0; call < 3; call += 1) await expectIn(source, right);
  clock.pass(lifetime * 1000 - 1);
  await expectIn(source, right);
  expect(await set.hits()).toBe(1);
  clock.pass(1);
  await expectIn(source, right);
  expect(await set.hits()).toBe(2);
});

test("callers who come together fetch a set once", async () => {
  const set = new PublishedSet();
  await set.answers({ body: JSON.stringify({ keys: [EdDSA.jwk] }), delayMs: 200 });
  const source = await guarded(set);
  const right = await token(EdDSA, claims());
  const answers = await Promise.all(Array.from({ length: 5 }, () => acquireWith(source, right)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(await set.hits()).toBe(1);
});

test.each<[string, object]>([
  ["access.jwt.jwksUrl", { jwksUrl: "http://idp.example/keys" }],
  ["access.jwt.jwksUrl", { jwksUrl: "https://user@idp.example/keys" }],
  ["access.jwt.jwksUrl", {}],
  ["access.jwt.jwks", { jwksUrl: "https://idp.example/keys", jwks: { keys: [EdDSA.jwk] } }],
  ["access.jwt.jwks", { jwks: { keys: [{ ...EdDSA.jwk, d: "AAAA" }] } }],
  ["access.jwt.jwks", { jwks: { keys: [{ kty: "oct", k: "AAAA" }] } }],
  ["access.jwt.jwks", { jwks: { keys: [] } }],
  ["access.jwt.jwks", { jwks: { keys: [{ ...EdDSA.jwk, use: "enc" }] } }],
  ["access.jwt.jwks", { jwks: { keys: [{ ...EdDSA.jwk, key_ops: ["sign"] }] } }],
  ["access.jwt.jwks", { jwks: { keys: [{ ...EdDSA.jwk, alg: "ES256" }] } }],
  ["access.jwt.jwks", { jwks: { keys: [{ ...EdDSA.jwk, crv: "X25519" }] } }],
  ["access.jwt.jwks", { jwks: { keys: [{ ...RS256.jwk, alg: "RS512" }, { ...ES256.jwk, crv: "P-384" }] } }],
  ["access.jwt.jwks", { jwks: { keys: [null, 1, {}] } }],
  ["access.jwt.issuer", { jwks: { keys: [EdDSA.jwk] }, issuer: "" }],
  ["access.jwt.audience", { jwks: { keys: [EdDSA.jwk] }, audience: undefined }],
  ["access.jwt.header", { jwks: { keys: [EdDSA.jwk] }, header: "X-Swarmvia-Key" }],
  ["access.jwt.algorithms", { jwks: { keys: [EdDSA.jwk] }, algorithms: ["none"] }],
])("a policy that is wrong in %s is 400 and names it", async (field, jwt) => {
  const answer = await configure({ name: "never" }, { access: { jwt: { issuer: ISSUER, audience: AUDIENCE, ...jwt } } });
  expectError(answer, 400, "invalid_request", { field });
});

test("inline keys are shown as they were given, in the settings and in the audit, and the same again are no change", async () => {
  const jwks = { note: { z: [1.5, "\u2028"], a: null }, keys: [EdDSA.jwk] };
  const source = await sourceWith({ jwt: { issuer: ISSUER, audience: AUDIENCE, jwks } });
  await expectIn(source, await token(EdDSA, claims()));
  const shown = (await admin("GET", `/pools/${source.name}`)).body.settings;
  expect(shown.access.jwt.jwks).toEqual(jwks);
  const reordered = { keys: jwks.keys, note: { a: null, z: jwks.note.z } };
  const again = await configure(source, { ...shown, access: { ...shown.access, jwt: { ...shown.access.jwt, jwks: reordered } } });
  expect(again.status).toBe(200);
  await expectIn(source, await token(EdDSA, claims({ sub: "later" })));
  const { entries } = (await admin("GET", `/pools/${source.name}/audit`)).body;
  expect(entries.map(({ action }: { action: string }) => action)).toEqual(["minted", "minted", "created"]);
  expect(entries[2].detail.access.jwt.jwks).toEqual(jwks);
});

test("a source without a policy asks for no token", async () => {
  const clock = stopClock();
  const source = await guarded(await publish(EdDSA));
  await expectOut(source);
  await configure(source, { access: { jwt: null } });
  clock.pass(1000);
  expect((await acquire(source)).status).toBe(200);
});
