// The builds that panic on purpose, for tests/serve/panics.test.mjs: as it is deployed, and where panics unwind.
// Never anywhere near build/, which is what is deployed.

import { build } from "./build.mjs";
import { ask, onPath } from "./run.mjs";
import { say, Stop } from "./say.mjs";

const FAULTS = { features: "fault-injection" };
/** What is read by the tests, too. */
export const ABORTING = "build-fault";
export const UNWINDING = "build-fault-unwind";

/**
 * Builds both, the second only with a nightly Rust, since no stable one can. A nightly is nobody's duty and may be broken any
 * day, so where that one can't be had, this says so and goes on.
 */
export async function buildWithFaults() {
  await build({ ...FAULTS, outDir: ABORTING });
  const obstacle = hasNightly() ? await attempt() : "there is no nightly Rust with rust-src (rustup toolchain install nightly --component rust-src)";
  if (obstacle) say(`PANICS THAT UNWIND WERE NOT TESTED: ${obstacle}.`);
}

async function attempt() {
  try {
    await build({ ...FAULTS, outDir: UNWINDING, unwind: true });
    return null;
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    return "this nightly could not build it, as is told above";
  }
}

function hasNightly() {
  const installed = onPath("rustup") && ask("rustup", ["component", "list", "--toolchain", "nightly", "--installed"]);
  return Boolean(installed) && /^rust-src/m.test(installed);
}
