// The workers of the cookbook run as they stand, against a server and an upstream that takes only so many at once.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
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

/** Runs a worker; resolves to the lines that it printed. */
function run(command, file, source) {
  const env = {
    ...process.env,
    LOCK_API: `http://127.0.0.1:${server.port}/pools/${source.name}/lock`,
    ACCESS_KEY: source.key,
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

test("the JavaScript worker", () => proves("node", "docs/cookbook/worker.mjs"));

const python = spawnSync("python3", ["--version"]).status === 0;
test("the Python worker", { skip: python ? false : "python3 is not here: install Python 3.9 or later to have it checked" }, () =>
  proves("python3", "docs/cookbook/worker.py"));

test("never were more calls at the upstream than it takes", () => assert.equal(crowd.most, MOST));
