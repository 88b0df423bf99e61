// `node scripts/budget.mjs`: holds what is exact (rows, calls, instructions of the core) against scripts/budget.json.
// With --write: puts the present numbers there; the sizes of the wasm stay, they are ceilings.
// Ends with "budget: N passed, N failed".

import { writeFileSync } from "node:fs";
import { compiler, hasValgrind, instructions } from "../bench/core.mjs";
import { guard, measureExact, readBudget } from "../bench/guard.mjs";
import { build } from "./lib/build.mjs";
import { inRoot } from "./lib/paths.mjs";
import { main, say, Stop } from "./lib/say.mjs";

await main(async () => {
  const [flag, ...more] = process.argv.slice(2);
  if (more.length > 0 || (flag !== undefined && flag !== "--write")) throw new Stop("Unknown option: there is --write.");
  await build();
  if (flag === "--write") return write();
  const { passed, failed } = await guard();
  say(`budget: ${passed} passed, ${failed} failed${failed > 0 ? "; if that is meant, commit the new numbers: node scripts/budget.mjs --write" : ""}`);
  process.exitCode = failed > 0 ? 1 : 0;
});

async function write() {
  const budget = { ...readBudget(), counts: await measureExact() };
  if (hasValgrind()) budget.core = { compiler: compiler(), instructions: instructions() };
  writeFileSync(inRoot("scripts", "budget.json"), `${JSON.stringify(budget, null, 2)}\n`);
  say("wrote scripts/budget.json");
}
