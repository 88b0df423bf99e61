// `npm run chaos -- --seed 7 --seconds 60`: the built Worker on bare workerd, a crowd of callers, and every fault that
// tests/chaos knows; then the checker looks whether a promise was broken.
// Ends with "chaos: N checks passed, N failed", and with exit code 1 if one failed.

import { check } from "../tests/chaos/check/index.mjs";
import { report } from "../tests/chaos/report.mjs";
import { FAULTS, run } from "../tests/chaos/run.mjs";
import { build } from "./lib/build.mjs";
import { main, say, Stop } from "./lib/say.mjs";

await main(async () => {
  const options = readOptions(process.argv.slice(2));
  await build();
  say(
    `chaos for ${options.seconds} s; the same choices again: npm run chaos -- --seed ${options.seed} --seconds ${options.seconds}`,
  );
  const result = await run(options);
  const { passed, failed } = report(result, FAULTS, check(result.history));
  say(`\nchaos: ${passed} checks passed, ${failed} failed (seed ${options.seed})`);
  process.exitCode = failed > 0 ? 1 : 0;
});

function readOptions(argv) {
  const options = { seed: Date.now() % 1_000_000, seconds: 60 };
  const rest = [...argv];
  while (rest.length > 0) {
    const flag = rest.shift();
    const value = Number(rest.shift());
    if (!["--seed", "--seconds"].includes(flag)) throw new Stop(`Unknown option ${flag}: there are --seed and --seconds.`);
    if (!Number.isInteger(value) || value < 0)
      throw new Stop(`${flag} takes a whole number, e.g. npm run chaos -- --seed 7 --seconds 60`);
    options[flag.slice(2)] = value;
  }
  if (options.seconds < 10) throw new Stop("--seconds takes 10 or more: in less not every fault happens.");
  return options;
}
