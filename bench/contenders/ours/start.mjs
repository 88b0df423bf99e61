// Ours, as `npm run serve` runs it: keys are checked, every answer has its headers, every attempt is logged.

import { copyFileSync } from "node:fs";
import { freePort } from "../../../scripts/lib/net.mjs";
import { inRoot } from "../../../scripts/lib/paths.mjs";
import { launch } from "../../../scripts/lib/serve.mjs";
import { lockSource, LONG_TERM_MS } from "../../lib/calls.mjs";
import { countingEntry } from "../../lib/counted.mjs";
import { server, untilAnswers } from "../../lib/server.mjs";
import { bundle } from "../../lib/worker.mjs";

// Made up, and for the bench only.
const env = {
  ADMIN_TOKEN: "bench-admin-token-bench-admin-token",
  SIGNING_KEYS: "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
};

/** The longest run of the bench stays within it. */
const KEY_TTL_MS = 86_400_000;

export const ours = {
  name: "ours",
  title: "swarmvia locks",
  about: "the full contract: signed keys, headers, access log, learning",
  locks: true,
  /** What it holds outlives the process, and its calls can be counted. */
  survives: true,
  missing: () => null,

  async start({ folder, counted = false }) {
    const outDir = counted ? "build-counted" : "build";
    if (counted) {
      await bundle(countingEntry, inRoot(outDir, "index.js"), { subject: inRoot("build", "index.js") });
      copyFileSync(inRoot("build", "index_bg.wasm"), inRoot(outDir, "index_bg.wasm"));
    }
    const port = await freePort();
    const group = launch({ port, data: folder, env, outDir, output: "ignore" });
    await untilAnswers(group, port, "/healthz");
    return server({ group, port, leastTermMs: 500, source: (name, wanted) => makeSource(port, name, wanted) });
  },
};

async function makeSource(port, name, { limit, depth = 100, termMs = LONG_TERM_MS }) {
  const settings = { concurrency: { limit }, queue: { maxDepth: depth, timeoutMs: 600_000 }, lease: { termMs } };
  const { ok, status } = await admin(port, "PUT", `/pools/${name}`, settings);
  if (!ok) throw new Error(`PUT /pools/${name}: ${status}`);
  const { body } = await admin(port, "POST", `/pools/${name}/keys`, { ttlMs: KEY_TTL_MS });
  return lockSource(name, { key: body.accessKey });
}

async function admin(port, method, path, sent) {
  const headers = { Authorization: `Bearer ${env.ADMIN_TOKEN}` };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: JSON.stringify(sent) });
  return { ok: answer.ok, status: answer.status, body: await answer.json() };
}
