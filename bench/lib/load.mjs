// Load: acquire and release as fast as answers come, by `wrk` where it is installed, else by Node, which takes more of
// the machine from who is measured; the report says which it was.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { execFile } from "node:child_process";
import { onPath } from "../../scripts/lib/run.mjs";
import { acquireText, MADE_UP_ID, releaseTemplate } from "./calls.mjs";
import { acquire, openLines, release } from "./line.mjs";

const run = promisify(execFile);
const script = fileURLToPath(new URL("pairs.lua", import.meta.url));

export const hasWrk = () => onPath("wrk");
export const generator = () => (hasWrk() ? "wrk" : "node");

/**
 * `callers` at one source, or one caller at each of several. Resolves to `{ pairs, p50, p99, bad }`: pairs a second,
 * milliseconds of a request, and answers that were not good or didn't come.
 */
export async function pairs({ server, sources, callers, seconds, folder }) {
  if (sources.length > 1 && callers !== sources.length) throw new Error("one caller for each of several sources");
  return hasWrk() ? byWrk({ server, sources, callers, seconds, folder }) : byNode({ server, sources, callers, seconds });
}

async function byWrk({ server, sources, callers, seconds, folder }) {
  const plan = join(folder, "plan.lua");
  writeFileSync(plan, planText(sources), { mode: 0o600 });
  const threads = sources.length > 1 ? callers : 1;
  const args = [`-t${threads}`, `-c${callers}`, `-d${seconds}s`, "--timeout", "10s", "-s", script, server.base, "--", plan];
  const { stdout } = await run("wrk", args);
  const result = JSON.parse(stdout.match(/^RESULT (.*)$/m)[1]);
  return { pairs: result.requests / 2 / result.seconds, requests: result.requests, p50: result.p50, p99: result.p99, bad: result.bad + result.broken };
}

/** JSON's escapes are Lua's too, for what is ASCII. */
function planText(sources) {
  const { idField, idLength } = sources[0];
  const one = (source) => `{acquire=${JSON.stringify(acquireText(source))},release=${JSON.stringify(releaseTemplate(source, idLength))}}`;
  const field = idField ? JSON.stringify(idField) : "false";
  return `return {idField=${field},madeUpId=${JSON.stringify(MADE_UP_ID)},sources={${sources.map(one).join(",")}}}\n`;
}

async function byNode({ server, sources, callers, seconds }) {
  const lines = await openLines(server.port, callers);
  const took = [];
  let bad = 0;
  const began = performance.now();
  const until = began + seconds * 1000;
  await Promise.all(
    lines.map(async (line, i) => {
      const source = sources[i % sources.length];
      try {
        for (let sent = performance.now(); sent < until; ) {
          const { id, at } = await acquire(line, source);
          const freed = await release(line, source, id);
          took.push(at - sent, freed.at - at);
          sent = freed.at;
        }
      } catch {
        bad += 1;
      }
    }),
  );
  const elapsed = (performance.now() - began) / 1000;
  lines.forEach((line) => line.close());
  took.sort((a, b) => a - b);
  const at = (share) => took[Math.floor((took.length - 1) * share)] ?? null;
  return { pairs: took.length / 2 / elapsed, requests: took.length, p50: at(0.5), p99: at(0.99), bad };
}

/** Plain GETs a second by 32 callers: what says whether the machine was quick enough for the rest to mean anything. */
export async function plainGets(server, seconds) {
  if (!hasWrk()) return null;
  const { stdout } = await run("wrk", ["-t1", "-c32", `-d${seconds}s`, `${server.base}/`]);
  return Number(stdout.match(/Requests\/sec:\s+([\d.]+)/)[1]);
}
