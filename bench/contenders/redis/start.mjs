// Redis with a Lua semaphore, behind a small Node HTTP server (server.mjs).

import { mkdirSync } from "node:fs";
import { freePort } from "../../../scripts/lib/net.mjs";
import { inRoot, modernNode } from "../../../scripts/lib/paths.mjs";
import { onPath } from "../../../scripts/lib/run.mjs";
import { lockSource, LONG_TERM_MS } from "../../lib/calls.mjs";
import { server, startProgram } from "../../lib/server.mjs";

export const redis = {
  name: "redis",
  title: "Redis and Node",
  about: "a semaphore as Lua scripts in Redis, behind a small Node HTTP server, each on its own core if there is one; written to disk once a second; no keys, no log",
  locks: true,
  missing: () => (onPath("redis-server") ? null : "redis is skipped: there is no redis-server on the PATH (Debian: redis-server)."),

  async start({ folder }) {
    mkdirSync(folder, { recursive: true });
    const port = await freePort();
    const args = [inRoot("bench/contenders/redis/server.mjs"), String(port), String(await freePort()), folder];
    const group = await startProgram({ program: modernNode(), args, port });
    return server({ group, port, source: (name, wanted) => makeSource(port, name, wanted) });
  },
};

async function makeSource(port, name, { limit, depth = 100, termMs = LONG_TERM_MS }) {
  const answer = await fetch(`http://127.0.0.1:${port}/pools/${name}`, { method: "PUT", body: JSON.stringify({ limit, depth, termMs }) });
  await answer.arrayBuffer();
  return lockSource(name);
}
