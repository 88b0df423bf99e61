// One run: every contender is started, and every measurement made of each of them in turn before the next one, so that what
// disturbs the machine disturbs all alike. Who isn't measured stands still. A new round starts them all anew, on empty
// folders, in another order.

import { cpus, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "../scripts/lib/run.mjs";
import { say } from "../scripts/lib/say.mjs";
import { generator, pairs, plainGets } from "./lib/load.mjs";
import { withFolder } from "./lib/scratch.mjs";
import { loads } from "./measures/load.mjs";
import { verbs } from "./measures/latency.mjs";
import { crowd, handOff, reclaim, utilisation } from "./measures/queue.mjs";

/** Callers of the load that warms up who takes as many. */
const WARM_CALLERS = 32;

const MEASURES = [...loads, verbs, handOff, utilisation, crowd, reclaim];

/** Resolves to `{ rounds: { contender: { figure: [a value for each round] } }, gets, spoiled }`. */
export async function run(chosen, options) {
  const result = { generator: generator(), rounds: {}, gets: [], spoiled: [] };
  for (let round = 0; round < options.rounds; round += 1) {
    say(`\nround ${round + 1} of ${options.rounds}`);
    await withFolder((folder) => oneRound(rotated(chosen, round), folder, options, round, result));
  }
  return result;
}

const rotated = (list, by) => [...list.slice(by % list.length), ...list.slice(0, by % list.length)];

async function oneRound(order, folder, options, round, result) {
  const running = [];
  try {
    for (const contender of order) {
      const began = performance.now();
      const server = await contender.start({ folder: join(folder, contender.name) });
      record(result, contender, round, { "start-ms": performance.now() - began });
      running.push({ contender, server });
      server.pause();
    }
    for (const one of running) await warmUp(one, options, folder);
    const base = running.find(({ contender }) => contender.name === "hop");
    if (base) result.gets.push(await awake(base.server, () => plainGets(base.server, options.seconds)));
    for (const measure of MEASURES) {
      for (const one of running) await oneMeasure(measure, one, { options, round, result, folder });
    }
  } finally {
    for (const { server } of running) await server.end();
  }
}

/** A service runs for days: what the runtime makes of code that is called often is to be there before anything is measured. */
async function warmUp({ contender, server }, { warmSeconds }, folder) {
  const callers = Math.min(WARM_CALLERS, contender.mostCallers ?? WARM_CALLERS);
  await awake(server, async () => {
    const sources = [await server.source("warm", { limit: 1000 })];
    await pairs({ server, sources, callers, seconds: warmSeconds, folder });
  });
}

async function oneMeasure(measure, { contender, server }, { options, round, result, folder }) {
  const needs = measure.needs ?? [];
  if (needs.includes("locks") && !contender.locks) return;
  if (needs.includes("queue") && !server.queues) return;
  const at = {
    server,
    contender,
    folder,
    seconds: options.seconds,
    calls: options.calls,
    settleMs: options.quick ? 500 : 1500,
    unique: (name) => `${name}-${measure.name}-${round}`.replaceAll("_", "-"),
  };
  try {
    const figures = await awake(server, () => measure.run(at));
    record(result, contender, round, figures);
    say(`  ${measure.name.padEnd(18)} ${contender.name.padEnd(8)} ${shown(figures)}`);
  } catch (error) {
    const why = `round ${round + 1}, ${measure.title}, ${contender.title}: ${error.message}`;
    result.spoiled.push(why);
    say(`  does not count: ${why}`);
  }
}

/** Lets a contender run for as long as it is measured. */
async function awake(server, work) {
  server.resume();
  try {
    await sleep(50);
    return await work();
  } finally {
    server.pause();
  }
}

function record(result, contender, round, figures) {
  const own = (result.rounds[contender.name] ??= {});
  for (const [name, value] of Object.entries(figures)) (own[name] ??= [])[round] = value;
}

const shown = (figures) =>
  Object.entries(figures)
    .map(([name, value]) => `${name} ${value === null ? "-" : value.toPrecision(3)}`)
    .join("  ");

export const machine = () => ({
  cpus: `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown"}`,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  system: `${process.platform} ${release()}`,
  node: process.versions.node,
  /** What a commit waits for; TMPDIR says where. */
  data: `${tmpdir()} (${ask("stat", ["-f", "-c", "%T", tmpdir()]) ?? "unknown"})`,
});
