// `npm test`: set-up, then every check; `npm test -- unit workerd`: only those.
// Goes on after a failure, and ends with a table and one line: N passed, N failed.

import { build } from "./lib/build.mjs";
import { checks } from "./lib/checks.mjs";
import { main, say, seconds, Stop } from "./lib/say.mjs";
import { setup } from "./lib/setup.mjs";

await main(async () => {
  const chosen = choose(process.argv.slice(2));
  const results = [];
  const obstacle = await prepare(chosen);
  if (obstacle) results.push(obstacle);
  else for (const check of chosen) results.push(await perform(check, results));

  say("\nstep          passed  failed     time");
  for (const { name, passed, failed, ms, skipped } of results) {
    const counts = skipped ? ` skipped: ${skipped}` : `${String(passed).padStart(6)}  ${String(failed).padStart(6)}  ${seconds(ms).padStart(8)}`;
    say(`${name.padEnd(12)}  ${counts}`);
  }
  const total = (key) => results.reduce((sum, result) => sum + result[key], 0);
  say(`\n${total("passed")} passed, ${total("failed")} failed`);
  if (total("failed") > 0) process.exitCode = 1;
});

function choose(names) {
  const unknown = names.find((name) => !checks.some((check) => check.name === name));
  if (unknown) throw new Stop(`There is no check called ${unknown}: there are ${checks.map((check) => check.name).join(", ")}.`);
  return names.length === 0 ? checks : checks.filter((check) => names.includes(check.name));
}

/** What must be there before the first check. Resolves to a failed result if it can't be had. */
async function prepare(chosen) {
  const started = Date.now();
  try {
    await setup();
    // Not a check that was asked for, but what the chosen ones run against.
    if (!chosen.some((check) => check.name === "build") && chosen.some((check) => check.needsBuild)) await build();
    return null;
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    say(error.message);
    return { name: "set-up", passed: 0, failed: 1, ms: Date.now() - started };
  }
}

async function perform(check, earlier) {
  say(`\n== ${check.name} ==`);
  if (check.needsBuild && earlier.some((result) => result.broken)) {
    say("skipped: the Worker could not be built");
    return { name: check.name, passed: 0, failed: 0, skipped: "no build" };
  }
  const started = Date.now();
  const result = await check.run();
  const ms = Date.now() - started;
  const verdict = result.skipped ? "SKIPPED" : result.failed === 0 ? "passed" : "FAILED";
  say(`== ${check.name}: ${verdict} in ${seconds(ms)} ==`);
  return { name: check.name, ms, ...result };
}
