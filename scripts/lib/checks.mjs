// The steps of `npm test`: what each one runs and how to read its number of test cases.
// A step never changes a file that git tracks.

import { readFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "./build.mjs";
import { ensureChromium } from "./chromium.mjs";
import { buildWithFaults } from "./faults.mjs";
import { inRoot, localBin, modernNode } from "./paths.mjs";
import { run } from "./run.mjs";
import { say, Stop } from "./say.mjs";

const WASM = ["--target", "wasm32-unknown-unknown"];

/**
 * In order. `run` resolves to `{ passed, failed }`, with `skipped` (why) if it could not be done here. Steps that use the built Worker say so with
 * `needsBuild`, and are skipped when it could not be built.
 */
export const checks = [
  { name: "fmt", run: () => cargo("fmt", "--check") },
  { name: "fmt-js", run: () => single(localBin("prettier"), ["--check", "."]) },
  { name: "clippy", run: () => cargo("clippy", "--locked", "--all-targets", "--", "-D", "warnings") },
  { name: "clippy-wasm", run: () => cargo("clippy", "--locked", ...WASM, "--", "-D", "warnings") },
  { name: "unit", run: () => counted(cargoCases, "cargo", ["test", "--locked"]) },
  // For wasm, because only there every module is compiled.
  { name: "doc", run: () => cargo("doc", "--locked", "--no-deps", "--document-private-items", ...WASM) },
  // The JavaScript of the Worker: every order of events, with a namespace and timers that are played.
  { name: "worker", run: () => counted(nodeCases, modernNode(), ["--test", "worker/*.test.mjs"]) },
  { name: "build", run: buildWithinBudget },
  { name: "openapi", run: () => node("scripts/check-openapi.mjs") },
  { name: "types", run: () => each(localBin("tsc"), ["-p", "worker"], ["-p", "tests/workerd"], ["-p", "dashboard"]) },
  { name: "workerd", needsBuild: true, run: () => counted(vitestCases, modernNode(), ["node_modules/vitest/vitest.mjs", "run"]) },
  { name: "serve", needsBuild: true, run: onBareWorkerd },
  { name: "chaos", needsBuild: true, run: chaos },
  { name: "fuzz-api", needsBuild: true, run: fuzzApi },
  { name: "dashboard", needsBuild: true, run: inBrowser },
  // Ten thousand runs, and the larger models: compiled for speed, as the next two are.
  { name: "simulation", run: () => counted(cargoCases, "cargo", ["test", "--locked", "--profile", "bench", "--test", "simulation", "--test", "model_check", "--", "--nocapture"]) },
  // One seed of the simulated upstreams, held to the bars of bench/learning.
  { name: "learning", run: () => cargo("bench", "--locked", "--bench", "learning", "--", "--check", "--seeds", "1") },
  // What is exact of what `npm run bench` measures: nothing of it depends on how busy the machine is.
  { name: "budget", needsBuild: true, run: () => counted(budgetCases, modernNode(), ["scripts/budget.mjs"]) },
];

const cargo = (...args) => single("cargo", args);
const node = (...args) => single(modernNode(), args);

const options = {
  cwd: inRoot(),
  env: { ...process.env, RUSTDOCFLAGS: "-D warnings", CLOUDFLARE_CF_FETCH_ENABLED: "false", WRANGLER_SEND_METRICS: "false" },
};

/** A step that is one case: it passes or it fails. */
async function single(program, args) {
  const { code } = await run(program, args, options);
  return code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/** A step of several cases, each a run of its own. */
async function each(program, ...runs) {
  const results = [];
  for (const args of runs) results.push(await single(program, args));
  return { passed: results.filter(({ passed }) => passed).length, failed: results.filter(({ failed }) => failed).length };
}

/** On real sockets; panics need builds of their own. */
async function onBareWorkerd() {
  try {
    await buildWithFaults();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    say(error.message);
    return { passed: 0, failed: 1 };
  }
  return counted(nodeCases, modernNode(), ["--test", "tests/serve/**/*.test.mjs"]);
}

/** Without a browser it is skipped, and says so; where a machine decides whether a change is good, it fails. */
async function inBrowser() {
  if (await ensureChromium()) return counted(nodeCases, modernNode(), ["--test", "--test-concurrency=1", "tests/dashboard/**/*.test.mjs"]);
  say("THE DASHBOARD WAS NOT TESTED: there is no Chromium. Install it (apt install chromium), or set CHROMIUM to its path.");
  return process.env.CI ? { passed: 0, failed: 1 } : { passed: 0, failed: 0, skipped: "no Chromium" };
}

/** A step with cases of its own. One that fails without a failed case (it did not compile) counts as one. */
async function counted(casesIn, program, args) {
  const { code, output } = await run(program, args, { ...options, keep: true });
  const cases = casesIn(stripVTControlCharacters(output));
  return { ...cases, failed: code !== 0 && cases.failed === 0 ? 1 : cases.failed };
}

const sum = (text, pattern) => Array.from(text.matchAll(pattern), ([, count]) => Number(count)).reduce((a, b) => a + b, 0);

/** `test result: ok. 12 passed; 0 failed; …`, once for each test binary. */
const cargoCases = (text) => ({
  passed: sum(text, /^test result: .* (\d+) passed;/gm),
  failed: sum(text, /^test result: .* (\d+) failed;/gm),
});

/** `Tests  1 failed | 4 passed (5)` */
const vitestCases = (text) => ({
  passed: sum(text, /^ *Tests .*?(\d+) passed/gm),
  failed: sum(text, /^ *Tests .*?(\d+) failed/gm),
});

/** `ℹ pass 4` and `ℹ fail 0` */
const nodeCases = (text) => ({
  passed: sum(text, /^\S+ pass (\d+)$/gm),
  failed: sum(text, /^\S+ fail (\d+)$/gm),
});

/** `chaos: 8 checks passed, 0 failed` */
const chaosCases = (text) => ({
  passed: sum(text, /^chaos: (\d+) checks passed/gm),
  failed: sum(text, /^chaos: .* (\d+) failed/gm),
});

/** `fuzz-api: 18 operations passed, 0 failed`, or `fuzz-api: SKIPPED: …` */
const fuzzCases = (text) => ({
  passed: sum(text, /^fuzz-api: (\d+) operations passed/gm),
  failed: sum(text, /^fuzz-api: .* (\d+) failed/gm),
  ...(/^fuzz-api: SKIPPED/m.test(text) ? { skipped: "no schemathesis" } : {}),
});

/** `budget: 20 passed, 0 failed` */
const budgetCases = (text) => ({
  passed: sum(text, /^budget: (\d+) passed/gm),
  failed: sum(text, /^budget: .* (\d+) failed/gm),
});

/** First that the checker notices what it is there for, then a run with choices that are always the same. */
async function chaos() {
  const checker = await counted(nodeCases, modernNode(), ["--test", "tests/chaos/**/*.test.mjs"]);
  const run = await counted(chaosCases, modernNode(), ["scripts/chaos.mjs", "--seed", "1", "--seconds", "15"]);
  return { passed: checker.passed + run.passed, failed: checker.failed + run.failed };
}

/** Cases that the API's document makes up; needs a Python tool, which a machine may not be able to have. */
function fuzzApi() {
  return counted(fuzzCases, modernNode(), ["scripts/fuzz-api.mjs", "--short"]);
}

/** Cloudflare bounds a Worker's size, and a bigger one starts slower: growth should be a decision. */
async function buildWithinBudget() {
  try {
    await build();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    say(error.message);
    return { passed: 0, failed: 1, broken: true };
  }
  const wasm = readFileSync(inRoot("build", "index_bg.wasm"));
  const kib = (bytes) => bytes / 1024;
  const zipped = kib(gzipSync(wasm, { level: 9 }).length);
  const budget = JSON.parse(readFileSync(inRoot("scripts", "budget.json"), "utf8"));
  const raw = kib(wasm.length);
  say(
    `index_bg.wasm: ${raw.toFixed(1)} KiB of ${budget.wasmKiB}, gzipped ${zipped.toFixed(1)} KiB of ${budget.wasmGzipKiB} (scripts/budget.json)`,
  );
  return raw <= budget.wasmKiB && zipped <= budget.wasmGzipKiB ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}
