// `npm run serve` as a place to live: what was stored is there after a restart, kill -9 included.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { freePort } from "../../scripts/lib/net.mjs";
import { startServe } from "../../scripts/lib/serve.mjs";

const ADMIN_TOKEN = "serve-test-admin-token-serve-test-0";
const env = { ADMIN_TOKEN, SIGNING_KEYS: "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" };

let data;
let server;

const start = async () => (server = await startServe({ port: await freePort(), data, env, output: "ignore" }));

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "swarmvia-serve-"));
});

afterEach(async () => {
  await server?.end();
  await rm(data, { recursive: true, force: true });
});

async function call(method, path, body) {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const answer = await fetch(server.base + path, { method, headers, body: body && JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
}

test("a source outlives kill -9 of the server", async () => {
  await start();
  assert.equal((await call("PUT", "/pools/kept", { concurrency: { limit: 7 } })).status, 201);
  process.kill(server.pid, "SIGKILL");
  assert.equal(await server.exited, 137);

  await start();
  const found = await call("GET", "/pools/kept");
  assert.equal(found.status, 200);
  assert.equal(found.body.settings.concurrency.limit, 7);
});

test("a second server on the same data folder is refused", async () => {
  await start();
  await assert.rejects(startServe({ port: await freePort(), data, env, output: "ignore" }), /in use by another server/);
});
