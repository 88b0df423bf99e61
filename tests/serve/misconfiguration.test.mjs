// A deployment whose secrets are missing or malformed: what needs them is shut, and says so. It is never open.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN_TOKEN, SIGNING_KEYS, serve } from "./support.mjs";

const bearer = (token) => ({ headers: { Authorization: `Bearer ${token}` } });

/** Runs a server with this environment for as long as `work` takes. */
async function withServer(env, work) {
  const server = await serve(env);
  try {
    await work(server);
  } finally {
    await server.end();
  }
}

function assertShut({ status, headers, body }, secret) {
  assert.deepEqual([status, body.error], [503, "unavailable"]);
  assert.match(headers["retry-after"], /^[1-9]\d*$/);
  assert.ok(body.message.includes(secret), body.message);
}

for (const [what, token] of [
  ["unset", undefined],
  ["under 32 characters", "x".repeat(31)],
  ["only commas", ","],
  ["a list with a short one", `${ADMIN_TOKEN},short`],
]) {
  test(`with ADMIN_TOKEN ${what} control routes answer 503 and say so, whatever is shown`, () =>
    withServer({ ADMIN_TOKEN: token, SIGNING_KEYS }, async (server) => {
      for (const shown of ["", token ?? "undefined", ADMIN_TOKEN, "null"]) {
        assertShut(await server.call("GET", "/pools", bearer(shown)), "ADMIN_TOKEN");
        assertShut(await server.call("PUT", "/pools/a", { ...bearer(shown), body: "{}" }), "ADMIN_TOKEN");
      }
      assert.equal((await server.call("GET", "/healthz")).status, 200);
      assert.equal((await server.call("POST", "/pools/a/lock/acquire", { headers: { "X-Swarmvia-Key": "x" } })).status, 401);
    }));
}

for (const [what, keys] of [
  ["unset", undefined],
  ["without an id", SIGNING_KEYS.slice(3)],
  ["too short", "k1:c2hvcnQ="],
  ["not base64", `k1:${"!".repeat(44)}`],
  ["a list with a bad one", `${SIGNING_KEYS},k2:x`],
]) {
  test(`with SIGNING_KEYS ${what} lock routes and minting answer 503 and say so, and tell no part of it`, () =>
    withServer({ ADMIN_TOKEN, SIGNING_KEYS: keys }, async (server) => {
      assert.equal((await server.admin("PUT", "/pools/a", {})).status, 201);
      const minted = await server.admin("POST", "/pools/a/keys", {});
      assertShut(minted, "SIGNING_KEYS");
      for (const part of keys?.split(/[:,]/) ?? []) assert.ok(part.length < 3 || !JSON.stringify(minted).includes(part));
      for (const path of ["acquire", "x/renew", "x/release"]) {
        assertShut(await server.call("POST", `/pools/a/lock/${path}`, { headers: { "X-Swarmvia-Key": "sv_at_x" } }), "SIGNING_KEYS");
      }
      assert.equal((await server.call("GET", "/healthz")).status, 200);
    }));
}

test("several admin tokens are good at once, for rotation", () => {
  const next = "next-admin-token-next-admin-token-1";
  return withServer({ ADMIN_TOKEN: `${next},${ADMIN_TOKEN}`, SIGNING_KEYS }, async (server) => {
    for (const token of [next, ADMIN_TOKEN]) assert.equal((await server.call("GET", "/pools", bearer(token))).status, 200);
    for (const token of [`${next},${ADMIN_TOKEN}`, ""]) assert.equal((await server.call("GET", "/pools", bearer(token))).status, 401);
  });
});
