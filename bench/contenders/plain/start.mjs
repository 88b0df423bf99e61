// The plain TypeScript object, on bare workerd with its objects on disk.

import { join } from "node:path";
import { freePort } from "../../../scripts/lib/net.mjs";
import { inRoot } from "../../../scripts/lib/paths.mjs";
import { lockSource, LONG_TERM_MS } from "../../lib/calls.mjs";
import { countingEntry } from "../../lib/counted.mjs";
import { server } from "../../lib/server.mjs";
import { bundle, startWorker } from "../../lib/worker.mjs";

const entry = inRoot("bench/contenders/plain/index.ts");

export const plain = {
  name: "plain",
  title: "plain object",
  about: "the same verbs as a plain TypeScript Durable Object: SQL storage, one row a verb, a queue; no keys, no log, no learning",
  locks: true,
  /** What it holds outlives the process, and its calls can be counted. */
  survives: true,
  missing: () => null,

  async start({ folder, counted = false }) {
    const out = join(folder, "modules", "index.js");
    if (counted) await bundle(countingEntry, out, { subject: entry });
    else await bundle(entry, out);
    const port = await freePort();
    const group = await startWorker({ folder, port, withStorage: true });
    return server({ group, port, source: (name, wanted) => makeSource(port, name, wanted) });
  },
};

async function makeSource(port, name, { limit, depth = 100, termMs = LONG_TERM_MS }) {
  const answer = await fetch(`http://127.0.0.1:${port}/pools/${name}`, { method: "PUT", body: JSON.stringify({ limit, depth, termMs }) });
  await answer.arrayBuffer();
  return lockSource(name);
}
