// Everything that the report shows, in one object: rounds, exact counts, growth, the core's steps, sizes, cost.

import { ask } from "../scripts/lib/run.mjs";
import { inRoot, workerdBinary } from "../scripts/lib/paths.mjs";
import { say } from "../scripts/lib/say.mjs";
import { contenders } from "./contenders/index.mjs";
import * as core from "./core.mjs";
import { costOfCycles, PRICES } from "./cost.mjs";
import { median } from "./lib/stats.mjs";
import { exact, growth, wasmSize } from "./once.mjs";
import { machine, run } from "./run.mjs";

/** What the bare hop must reach under a plain GET: below it, the machine was too slow or too busy for the rest to mean much. */
export const LEAST_GETS = 6500;

export async function measure(options) {
  const wanted = contenders.filter(({ name }) => !options.only || options.only.includes(name));
  const skipped = wanted.map((contender) => contender.missing()).filter((why) => why !== null);
  skipped.forEach((why) => say(why));
  const chosen = wanted.filter((contender) => contender.missing() === null);

  const result = await run(chosen, options);
  const results = {
    at: new Date().toISOString().slice(0, 10),
    commit: ask("git", ["-C", inRoot(), "rev-parse", "--short", "HEAD"]),
    machine: { ...machine(), workerd: ask(workerdBinary(), ["--version"]) },
    options: { rounds: options.rounds, seconds: options.seconds, quick: options.quick },
    contenders: Object.fromEntries(chosen.map(({ name, title, about }) => [name, { title, about }])),
    skipped,
    ...result,
    isStrong: result.gets.length > 0 && median(result.gets) >= LEAST_GETS,
    wasm: wasmSize(),
    exact: {},
    growth: {},
    cost: {},
    prices: PRICES,
  };
  for (const contender of chosen.filter(({ survives }) => survives)) {
    say(`\nrows and calls: ${contender.name}`);
    results.exact[contender.name] = await exact(contender, [0, ...options.sizes]);
    results.cost[contender.name] = costOf(results, contender.name);
  }
  say("\ngrowth");
  for (const contender of chosen.filter(({ locks, name }) => locks && name !== "prefect")) {
    results.growth[contender.name] = await growth(contender, options.sizes);
  }
  say("\nthe native core");
  results.core = { compiler: core.compiler(), nanoseconds: core.nanoseconds() };
  if (core.hasValgrind()) results.core.instructions = core.instructions();
  return results;
}

function costOf(results, name) {
  const figures = results.rounds[name];
  const middle = (figure) => {
    const values = (figures[figure] ?? []).filter(Number.isFinite);
    return values.length > 0 ? median(values) : null;
  };
  const [acquire, release] = [middle("acquire-p50"), middle("release-p50")];
  const busyMs = acquire === null || release === null ? null : acquire + release;
  return costOfCycles(results.exact[name].byHeld[0], { cpuUs: middle("cpu-us-8"), busyMs });
}
