// The guard: what is exact is held against the committed numbers (scripts/budget.json); the size of
// the wasm is held against its ceilings where it is built. Wall-clock time never is.
// A number that got better fails too, where it is exact: commit the new one, so that it can't get worse again unseen.

import { readFileSync } from "node:fs";
import { ours } from "./contenders/ours/start.mjs";
import { compiler, hasValgrind, instructions } from "./core.mjs";
import { exact } from "./once.mjs";
import { inRoot } from "../scripts/lib/paths.mjs";
import { say } from "../scripts/lib/say.mjs";

/** What instructions may differ by: layout and alignment move them a little. */
const TOLERANCE = 0.03;

export const readBudget = () => JSON.parse(readFileSync(inRoot("scripts", "budget.json"), "utf8"));

/** What is measured now, in the form of the budget. */
export async function measureExact() {
  const { byHeld, refusal, "hand-off": handOff } = await exact(ours, [0, 100]);
  return { verbs: { ...byHeld[0], refusal, "hand-off": handOff }, "verbs with 100 held": byHeld[100] };
}

/** Resolves to `{ passed, failed }`; says each number that isn't as committed. */
export async function guard() {
  const budget = readBudget();
  const verdict = { passed: 0, failed: 0 };
  const check = (isGood, what) => {
    verdict[isGood ? "passed" : "failed"] += 1;
    if (!isGood) say(what);
  };
  await checkCounts(budget, check);
  checkInstructions(budget, check);
  return verdict;
}

async function checkCounts({ counts }, check) {
  const measured = await measureExact();
  for (const [group, verbs] of Object.entries(counts)) {
    for (const [verb, committed] of Object.entries(verbs)) {
      const now = measured[group][verb];
      const isSame = Object.entries(committed).every(([what, count]) => now[what] === count);
      check(isSame, `${group}, ${verb}: ${JSON.stringify(now)}, committed is ${JSON.stringify(committed)}`);
    }
  }
}

function checkInstructions({ core }, check) {
  if (!hasValgrind()) return say("instructions of the core are not checked: there is no valgrind.");
  if (compiler() !== core.compiler) {
    return say(`instructions of the core are not checked: the committed ones are of Rust ${core.compiler}, this is ${compiler()}.`);
  }
  const measured = instructions();
  for (const [name, committed] of Object.entries(core.instructions)) {
    const now = measured[name];
    const isNear = Math.abs(now / committed - 1) <= TOLERANCE;
    check(isNear, `${name}: ${now} instructions, committed are ${committed}, and ${TOLERANCE * 100} % may be between them`);
  }
}
