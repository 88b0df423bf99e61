// Pairs of acquire and release a second, and what they cost in CPU: one source with more and more callers, then many
// sources with one caller each.

import { pairs } from "../lib/load.mjs";
import { cpuMs } from "../lib/processes.mjs";

export const CALLERS = [1, 8, 32, 128];
export const SOURCES = 64;
/** Above the number of callers, and above what a run that was cut off leaves held. */
const LIMIT = 1000;

const oneSource = (callers) => ({
  name: `pairs-${callers}`,
  title: `${callers} callers at one source`,
  run: (at) => load(at, callers, [`c${callers}`]),
});

const manySources = {
  name: `pairs-${SOURCES}-sources`,
  title: `${SOURCES} sources, one caller each`,
  run: (at) => load(at, SOURCES, Array.from({ length: SOURCES }, (_, i) => `m${i}`)),
};

export const loads = [...CALLERS.map(oneSource), manySources];

/** A source of its own for each run: what an earlier one left held is not in the way. */
async function load({ server, folder, seconds, unique }, callers, names) {
  const sources = [];
  for (const name of names) sources.push(await server.source(unique(name), { limit: LIMIT }));
  await pairs({ server, sources, callers, seconds: 1, folder }); // Warms up.
  const before = cpuMs(server.pid);
  const result = await pairs({ server, sources, callers, seconds, folder });
  const used = before === null ? null : cpuMs(server.pid) - before;
  if (result.bad > 0) throw new Error(`${result.bad} answers were not 200, of ${result.requests}`);
  if (result.requests === 0) throw new Error("no answer came in time");
  const key = callers === SOURCES ? `${SOURCES}-sources` : String(callers);
  return {
    [`pairs-${key}`]: result.pairs,
    [`request-p50-${key}`]: result.p50,
    [`request-p99-${key}`]: result.p99,
    [`cpu-us-${key}`]: used === null ? null : (used * 1000) / result.requests,
  };
}
