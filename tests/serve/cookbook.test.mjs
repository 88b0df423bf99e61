// The workers of the cookbook run as they stand, against a server and an upstream that takes only so many at once.
// What they do when something goes wrong: cookbook-faults.test.mjs.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { serve, tally } from "./support.mjs";

const CALLS = 12;
const MOST = 3;

let server;
let upstream;
const crowd = tally();

before(async () => {
  server = await serve();
  upstream = createServer((request, response) => {
    crowd.enter();
    setTimeout(() => {
      crowd.leave();
      response.writeHead(200, { "RateLimit-Policy": `"calls";q=${MOST};qu="concurrent-requests"`, "X-Quota": "none" });
      response.end("a thing");
    }, 50);
  });
  await new Promise((resolve) => upstream.listen(0, "127.0.0.1", resolve));
});

after(async () => {
  upstream.close();
  await server.end();
});

/** Runs a worker; resolves to the lines that it printed. `key` is how it comes to its key. */
function run(command, file, source, key = { ACCESS_KEY: source.key }) {
  const env = {
    ...process.env,
    LOCK_API: `http://127.0.0.1:${server.port}/pools/${source.name}/lock`,
    ...key,
    UPSTREAM: `http://127.0.0.1:${upstream.address().port}/things`,
  };
  return new Promise((resolve, reject) => {
    const worker = spawn(command, [file, String(CALLS)], { env, stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    worker.stdout.setEncoding("utf8").on("data", (chunk) => (text += chunk));
    worker.on("error", reject);
    worker.on("close", (code) => (code === 0 ? resolve(text.trim().split("\n")) : reject(new Error(`${file} ended with ${code}`))));
  });
}

async function proves(command, file) {
  const settings = { concurrency: { limit: MOST, max: 10, adaptive: true } };
  const source = await server.createSource(`cookbook-${command}`.replace(/[^a-z-]/g, ""), settings);
  assert.deepEqual(await run(command, file, source), Array(CALLS).fill("200 a thing"));
  const state = await server.state(source);
  assert.deepEqual([state.inUse, state.queueDepth], [0, 0]);
  assert.equal(state.counters.acquires.granted, CALLS);
  assert.equal(state.learned.concurrency.limit, MOST, "the upstream's headers were reported");
}

/** A key that has less than a minute to live is refreshed first, once for all calls, and kept. */
async function refreshes(command, file) {
  const source = await server.createSource(`refresh-${command}`, { concurrency: { limit: MOST } });
  const folder = await mkdtemp(join(tmpdir(), "swarmvia-cookbook-"));
  const KEY_FILE = join(folder, "key.json");
  const { body: minted } = await server.admin("POST", `/pools/${source.name}/keys`, { ttlMs: 59_000 });
  await writeFile(KEY_FILE, JSON.stringify(minted));
  for (let starts = 0; starts < 2; starts += 1) {
    assert.deepEqual(await run(command, file, source, { KEY_FILE }), Array(CALLS).fill("200 a thing"));
  }
  const kept = JSON.parse(await readFile(KEY_FILE, "utf8"));
  assert.equal(kept.keyId, minted.keyId);
  assert.notEqual(kept.refreshToken, minted.refreshToken);
  const { keys } = (await server.admin("GET", `/pools/${source.name}/keys`)).body;
  assert.equal(keys.find(({ keyId }) => keyId === minted.keyId).state, "live", "no token was used twice");
  await rm(folder, { recursive: true });
}

test("the JavaScript worker", () => proves("node", "docs/cookbook/worker.mjs"));
test("the JavaScript worker refreshes its key", () => refreshes("node", "docs/cookbook/worker.mjs"));

const python = spawnSync("python3", ["--version"]).status === 0;
test("the Python worker", { skip: python ? false : "python3 is not here: install Python 3.9 or later to have it checked" }, () =>
  proves("python3", "docs/cookbook/worker.py"));
test("the Python worker refreshes its key", { skip: python ? false : "python3 is not here" }, () =>
  refreshes("python3", "docs/cookbook/worker.py"));

test("never were more calls at the upstream than it takes", () => assert.equal(crowd.most, MOST));
