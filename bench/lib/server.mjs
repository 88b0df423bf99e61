// A contender that runs: a process group, where it listens, how it is made to stand still.

import { setTimeout as sleep } from "node:timers/promises";
import { spawnGroup } from "../../scripts/lib/attend.mjs";
import { Stop } from "../../scripts/lib/say.mjs";
import { pause, resume } from "./processes.mjs";
import { mustEndWithUs } from "./scratch.mjs";

const POLL_MS = 2;

/** `source(name, wanted)` makes a source: `{ limit, depth, termMs }`. The rest is what the measurements need to know. */
export function server({ group, port, source, queues = true, leastTermMs = 1000 }) {
  return {
    port,
    base: `http://127.0.0.1:${port}`,
    pid: group.pid,
    source,
    queues,
    leastTermMs,
    pause: () => pause(group.pid),
    resume: () => resume(group.pid),
    async end() {
      resume(group.pid);
      await group.end(3000);
    },
  };
}

/** Starts a program; resolves when `path` answers with anything. */
export async function startProgram({ program, args, port, path = "/", env = process.env, graceMs = 120_000 }) {
  const group = spawnGroup(program, args, { env, stdio: ["ignore", "ignore", "ignore"] });
  await untilAnswers(group, port, path, graceMs);
  return group;
}

export async function untilAnswers(group, port, path, graceMs = 120_000) {
  mustEndWithUs(group);
  let code = null;
  group.exited.then((ended) => (code = ended));
  for (const until = Date.now() + graceMs; Date.now() < until; await sleep(POLL_MS)) {
    if (code !== null) throw new Stop(`a contender ended with code ${code} before it was ready.`);
    try {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
      await answer.arrayBuffer();
      return;
    } catch {
      // Not listening yet.
    }
  }
  await group.end();
  throw new Stop("a contender did not answer in time.");
}
