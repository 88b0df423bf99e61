// `npm run fuzz:api -- --seed 7 --seconds 180`: schemathesis tries openapi.yaml against the built Worker on bare workerd,
// with every check on (tests/fuzz). `--short` is what `npm test` runs: the same with fewer cases and a fixed seed.
// Ends with "fuzz-api: N operations passed, N failed"; without schemathesis it says so and passes nothing.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { build } from "./lib/build.mjs";
import { freePort } from "./lib/net.mjs";
import { inRoot } from "./lib/paths.mjs";
import { run } from "./lib/run.mjs";
import { main, say, Stop } from "./lib/say.mjs";
import { findSchemathesis } from "./lib/schemathesis.mjs";
import { startServe } from "./lib/serve.mjs";

const LONG = { seconds: 180, examples: 100 };
const SHORT = { seconds: 30, examples: 5, seed: 1 };

await main(async () => {
  const options = readOptions(process.argv.slice(2));
  const { program, why } = findSchemathesis();
  if (!program) {
    say(`fuzz-api: SKIPPED: API fuzzing needs schemathesis, and ${why}. Nothing was fuzzed.`);
    return;
  }
  await build();
  const { code, output } = await withServer((server) => fuzz(program, server, options));
  const failures = Number(output.match(/(\d+) failures?\b(?=.* in [\d.]+s)/)?.[1] ?? 0);
  const tested = Number(output.match(/^ *Tested: (\d+)/m)?.[1] ?? 0);
  const failed = code === 0 && tested > 0 ? 0 : Math.max(1, failures);
  say(`fuzz-api: ${failed === 0 ? tested : 0} operations passed, ${failed} failed (seed ${options.seed})`);
  process.exitCode = failed > 0 ? 1 : 0;
});

function fuzz(program, { base, adminToken, data }, { seed, seconds, examples }) {
  const limits = ["--seed", seed, "--max-examples", examples, "--max-time", seconds].map(String);
  const args = [
    "--config-file",
    inRoot("tests", "fuzz", "schemathesis.toml"),
    "run",
    inRoot("openapi.yaml"),
    "--url",
    base,
    ...limits,
  ];
  // In its own folder: hooks are found there, and nothing is written into the project.
  const env = { ...process.env, FUZZ_BASE: base, FUZZ_ADMIN_TOKEN: adminToken, PYTHONDONTWRITEBYTECODE: "1", HYPOTHESIS_STORAGE_DIRECTORY: join(data, "hypothesis") };
  return run(program, args, { cwd: inRoot("tests", "fuzz"), env, keep: true });
}

async function withServer(body) {
  const data = mkdtempSync(join(tmpdir(), "swarmvia-fuzz-"));
  const adminToken = randomBytes(32).toString("base64url");
  const env = { ADMIN_TOKEN: adminToken, SIGNING_KEYS: `k1:${randomBytes(32).toString("base64")}` };
  const server = await startServe({ port: await freePort(), data, env, output: "ignore" });
  try {
    return await body({ base: server.base, adminToken, data });
  } finally {
    await server.end();
    rmSync(data, { recursive: true, force: true });
  }
}

function readOptions(argv) {
  const options = { seed: Date.now() % 1_000_000, ...LONG };
  const rest = [...argv];
  while (rest.length > 0) {
    const flag = rest.shift();
    if (flag === "--short") {
      Object.assign(options, SHORT);
      continue;
    }
    const value = Number(rest.shift());
    if (!["--seed", "--seconds"].includes(flag))
      throw new Stop(`Unknown option ${flag}: there are --seed, --seconds and --short.`);
    if (!Number.isInteger(value) || value < 0)
      throw new Stop(`${flag} takes a whole number, e.g. npm run fuzz:api -- --seed 7 --seconds 180`);
    options[flag.slice(2)] = value;
  }
  return options;
}
