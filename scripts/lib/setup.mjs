// Everything a fresh clone needs before it can build: the wasm target, two cargo tools, npm packages.
// Does nothing, in well under a second, when all is there. Never changes a file that git tracks.

import { existsSync } from "node:fs";
import { join } from "node:path";
import * as cargoTools from "./cargo-tools.mjs";
import { withLock } from "./lock.mjs";
import * as nodeModules from "./node-modules.mjs";
import { toolCache } from "./paths.mjs";
import { ask, must, onPath } from "./run.mjs";
import { say, seconds, Stop } from "./say.mjs";

const WASM_TARGET = "wasm32-unknown-unknown";

export async function setup() {
  checkPrograms();
  const steps = allSteps();
  if (steps.some((step) => !step.isDone())) {
    await withLock(join(toolCache, "setup.lock"), "set-up", () => runSteps(steps));
  }
  cargoTools.checkWasmBindgen();
}

function checkPrograms() {
  const missing = (what, how) => new Stop(`${what} is missing: ${how}`);
  if (!onPath("cargo")) throw missing("Rust (cargo)", "install it as https://rustup.rs says, then open a new terminal.");
  if (!onPath("npm")) throw missing("npm", "install Node 20 or newer, which brings it.");
  if (!onPath("cc")) throw missing("A C compiler (cc)", "install your system's, e.g. \"apt install build-essential\" or \"xcode-select --install\".");
}

function allSteps() {
  return [wasmTarget(), cargoTool(cargoTools.workerBuild()), cargoTool(cargoTools.wasmBindgen()), npmPackages()];
}

/** What another process did while we waited for the lock is not done again, hence the second look. */
async function runSteps(steps) {
  const todo = steps.filter((step) => !step.isDone());
  for (const [index, step] of todo.entries()) {
    say(`[${index + 1}/${todo.length}] ${step.title}`);
    const started = Date.now();
    await step.run();
    say(`      done in ${seconds(Date.now() - started)}`);
  }
  cargoTools.removeLeftovers();
}

function wasmTarget() {
  const installed = () => {
    const sysroot = ask("rustc", ["--print", "sysroot"]);
    return sysroot !== null && existsSync(join(sysroot, "lib", "rustlib", WASM_TARGET, "lib"));
  };
  return {
    title: `adding the Rust target ${WASM_TARGET}`,
    isDone: installed,
    run: async () => {
      if (!onPath("rustup")) {
        throw new Stop(`rustup is missing, and this Rust has no ${WASM_TARGET}: install Rust as https://rustup.rs says.`);
      }
      await must("rustup could not add the target: its message is above this line.", "rustup", ["target", "add", WASM_TARGET]);
    },
  };
}

const cargoTool = (tool) => ({
  title: `building ${tool.crate} ${tool.version} (once per machine, about ${tool.minutes} minutes)`,
  isDone: () => cargoTools.isInstalled(tool),
  run: () => cargoTools.install(tool),
});

const npmPackages = () => ({
  title: "installing the npm packages of package-lock.json",
  isDone: nodeModules.isInstalled,
  run: nodeModules.install,
});
