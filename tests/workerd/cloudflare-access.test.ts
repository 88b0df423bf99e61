// Cloudflare Access in front: its tokens are taken for users and for services, and nothing else is.

import { inject, afterEach, beforeEach, expect, test, vi } from "vitest";
import { configure, expectError, grant, release, renew, stopClock, type Source } from "./support";
import { expectIn, expectOut, makeSigner, PublishedSet, seconds, sourceWith, token, type Signer } from "./tokens";

const HEADER = "Cf-Access-Jwt-Assertion";
const TAG = "4714c1358e65fe4b408ad6d432a5f878f08194bdb4752441fd56faefa9b2b6f2";

const [key, previous] = [await makeSigner("RS256", "current"), await makeSigner("RS256", "previous")];

/** A team of Access; its certificates are with the key server, whatever host the Worker asks. */
class Team extends PublishedSet {
  constructor() {
    super(`team-${crypto.randomUUID()}`);
  }

  get domain(): string {
    return `${this.name}.cloudflareaccess.com`;
  }

  /** As Access answers: the keys, and certificates beside them. */
  has(...keys: Signer[]): Promise<this> {
    const public_certs = keys.map(({ kid }) => ({ kid, cert: "-----BEGIN CERTIFICATE-----" }));
    const body = JSON.stringify({ keys: keys.map(({ jwk }) => jwk), public_cert: public_certs[0], public_certs });
    return this.answers({ headers: { "Content-Type": "application/json" }, body });
  }

  user = (more: object = {}) => ({
    aud: [TAG],
    email: "user@example.com",
    exp: seconds(300),
    iat: seconds(),
    nbf: seconds(),
    iss: `https://${this.domain}`,
    type: "app",
    identity_nonce: "6ei69kawdKzMIAPF",
    sub: "7335d417-61da-459d-899c-0a01c76a2f94",
    country: "US",
    ...more,
  });

  service = (more: object = {}) => ({
    type: "app",
    aud: [TAG],
    exp: seconds(300),
    iss: `https://${this.domain}`,
    common_name: "e367826f93b8d71185e03fe518aff3b4.access",
    iat: seconds(),
    sub: "",
    ...more,
  });

  source = (): Promise<Source> => sourceWith({ cloudflareAccess: { teamDomain: this.domain, audience: TAG } });
}

const asked: string[] = [];

// Only the host is another: the fetch itself is real.
beforeEach(() => {
  asked.length = 0;
  const real = globalThis.fetch;
  vi.spyOn(globalThis, "fetch").mockImplementation((input, init) => {
    const url = new URL(input instanceof Request ? input.url : String(input));
    if (!url.hostname.endsWith(".cloudflareaccess.com")) return real(input, init);
    asked.push(url.href);
    return real(`${inject("keyServer")}/sets/${url.hostname.split(".")[0]}`, init);
  });
});

afterEach(() => {
  vi.restoreAllMocks();
});

test("a user's token and a service's token are in", async () => {
  const team = await new Team().has(key, previous);
  const source = await team.source();
  await expectIn(source, await token(key, team.user()), HEADER);
  await expectIn(source, await token(previous, team.user()), HEADER);
  await expectIn(source, await token(key, team.service()), HEADER);
  expect(asked).toEqual([`https://${team.domain}/cdn-cgi/access/certs`]);
});

test.each<[string, (team: Team) => object]>([
  ["of another team", (team) => team.user({ iss: "https://other.cloudflareaccess.com" })],
  ["of an issuer with a path", (team) => team.user({ iss: `https://${team.domain}/` })],
  ["for another application", (team) => team.user({ aud: ["other"] })],
  ["that is expired", (team) => team.user({ exp: seconds(-31) })],
  ["without an end", (team) => team.user({ exp: undefined })],
  ["that is not yet valid", (team) => team.user({ nbf: seconds(40) })],
  ["of the whole organisation", (team) => team.user({ type: "org" })],
  ["without a type", (team) => team.user({ type: undefined })],
  ["that names no one", (team) => team.user({ email: undefined })],
  ["of a service without a name", (team) => team.service({ common_name: "" })],
])("a token %s is out", async (_, said) => {
  const team = await new Team().has(key);
  const source = await team.source();
  await expectOut(source, await token(key, said(team)), HEADER);
  await expectIn(source, await token(key, team.user()), HEADER);
});

test("only RS256 is taken, and only with a key of the team", async () => {
  const [stranger, edwards] = [await makeSigner("RS256", "current"), await makeSigner("EdDSA", "edwards")];
  const team = await new Team().has(key, edwards);
  const source = await team.source();
  await expectOut(source, await token(stranger, team.user()), HEADER);
  await expectOut(source, await token(edwards, team.user()), HEADER);
  await expectOut(source, await token(key, team.user(), { alg: "HS256" }), HEADER);
  await expectOut(source, await token(key, team.user(), { alg: "none" }), HEADER);
  await expectOut(source, await token(key, team.user(), { kid: "made-up" }), HEADER);
});

test("no token, or one in another header, is out", async () => {
  const team = await new Team().has(key);
  const source = await team.source();
  const right = await token(key, team.user());
  await expectOut(source);
  await expectOut(source, right, "X-Swarmvia-Jwt");
  await expectOut(source, `CF_Authorization=${right}`, "Cookie");
  await expectIn(source, right, HEADER);
});

test("renew and release check it as acquire does", async () => {
  const team = await new Team().has(key);
  const source = await team.source();
  const headers = { [HEADER]: await token(key, team.user()) };
  const slot = await grant(source, { headers });
  expectError(await renew(source, slot), 401, "unauthorized");
  expectError(await release(source, slot), 401, "unauthorized");
  expect((await release(source, slot, undefined, { headers })).body).toEqual({ released: true });
});

test("a team that rotated its keys is followed, and one that is down doesn't matter for ten minutes", async () => {
  const clock = stopClock();
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  const team = await new Team().has(previous);
  const source = await team.source();
  await expectIn(source, await token(previous, team.user()), HEADER);
  await team.has(key, previous);
  await expectIn(source, await token(key, team.user()), HEADER);
  await team.answers({ fault: "down" });
  clock.pass(1_199_000);
  await expectIn(source, await token(key, team.user()), HEADER);
  clock.pass(1000);
  await expectOut(source, await token(key, team.user()), HEADER);
  expect(logged.mock.calls.flat().join()).toContain(`https://${team.domain}/cdn-cgi/access/certs`);
});

test.each([
  ["has no keys any more", { body: '{"keys":[],"public_certs":[]}' }],
  ["is no longer there", { status: 404 }],
  ["is gone", { status: 410, body: "gone" }],
])("a team that %s lets no one in, until it has keys again", async (_, answering) => {
  const clock = stopClock();
  vi.spyOn(console, "error").mockImplementation(() => {});
  const team = await new Team().has(key);
  const source = await team.source();
  const right = await token(key, team.user({ exp: seconds(3600) }));
  await expectIn(source, right, HEADER);
  await team.answers(answering);
  clock.pass(600_000);
  await expectOut(source, right, HEADER);
  await team.has(key);
  clock.pass(2000);
  await expectIn(source, right, HEADER);
});

test("a team that can't be asked lets no one in", async () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  const team = await new Team().answers({ fault: "down" });
  await expectOut(await team.source(), await token(key, team.user()), HEADER);
});

test("a team's token is not good for another team's source, nor for another application's", async () => {
  const [here, there] = [await new Team().has(key), await new Team().has(key)];
  const [source, other] = [await here.source(), await there.source()];
  const right = await token(key, here.user());
  await expectIn(source, right, HEADER);
  await expectOut(other, right, HEADER);
  await configure(source, { access: { cloudflareAccess: { teamDomain: here.domain, audience: "other" } } });
  await expectOut(source, right, HEADER);
});

test("Access and a JWT are each on its own: where both are asked for, both are needed", async () => {
  const team = await new Team().has(key);
  const edwards = await makeSigner("EdDSA");
  const jwt = { issuer: "i", audience: "a", jwks: { keys: [edwards.jwk] } };
  const source = await sourceWith({ jwt, cloudflareAccess: { teamDomain: team.domain, audience: TAG } });
  const byAccess = await token(key, team.user());
  const byIssuer = await token(edwards, { iss: "i", aud: "a", exp: seconds(300) });
  await expectOut(source, byAccess, HEADER);
  await expectOut(source, byIssuer);
  const slot = await grant(source, { headers: { [HEADER]: byAccess, "X-Swarmvia-Jwt": byIssuer } });
  expect(slot.slotId).toBeTruthy();
});

test.each([
  "",
  "team",
  "cloudflareaccess.com",
  "https://team.cloudflareaccess.com",
  "team.cloudflareaccess.com/",
  "team.cloudflareaccess.com:443",
  "team.cloudflareaccess.com.evil.example",
  "evil.example/.cloudflareaccess.com",
  "evil.example#.cloudflareaccess.com",
  "user@team.cloudflareaccess.com",
])("a team domain is a bare host name under cloudflareaccess.com, and %j is none", async (teamDomain) => {
  const answer = await configure({ name: "never" }, { access: { cloudflareAccess: { teamDomain, audience: TAG } } });
  expectError(answer, 400, "invalid_request", { field: "access.cloudflareAccess.teamDomain" });
});
