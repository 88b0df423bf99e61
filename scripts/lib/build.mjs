// Builds the Worker (Rust to wasm, plus worker-build's JavaScript shim) into build/, and the pages.
// Does nothing when its inputs are unchanged. Never leaves a half-written build marked as good.

import { rmSync, writeFileSync } from "node:fs";
import { delimiter } from "node:path";
import { wasmBindgen, workerBuild } from "./cargo-tools.mjs";
import { inputsHash, isFresh } from "./inputs.mjs";
import { withLock } from "./lock.mjs";
import { buildPages } from "./pages.mjs";
import { inRoot, localBin } from "./paths.mjs";
import { must } from "./run.mjs";
import { say, seconds, Stop } from "./say.mjs";
import { setup } from "./setup.mjs";

const INPUT_FILES = ["Cargo.toml", "Cargo.lock", "openapi.yaml", "package-lock.json", "scripts/lib/build.mjs", "scripts/lib/bundle.mjs"];
const INPUT_FOLDERS = ["src", "worker", ".cargo"];

/** Options: `outDir` (under the project), `dev` for an unoptimised build, `unwind` for one in which panics unwind, cargo `features`. */
export async function build({ outDir = "build", dev = false, unwind = false, features = "" } = {}) {
  await setup();
  const args = [dev ? "--dev" : "--release", "--out-dir", outDir];
  if (unwind) args.push("--panic-unwind");
  if (features) args.push("--", "--features", features);

  await buildPages();
  const stamp = inRoot(outDir, ".inputs");
  const product = inRoot(outDir, "index.js");
  if (isFresh(stamp, product, inputsHash(INPUT_FILES, INPUT_FOLDERS, args))) return;
  await withLock(inRoot(outDir, ".lock"), "build", async () => {
    const hash = inputsHash(INPUT_FILES, INPUT_FOLDERS, args); // Before the build: an edit made during it must count as a change.
    if (isFresh(stamp, product, hash)) return;
    say(`building the Worker into ${outDir}/`);
    const started = Date.now();
    rmSync(stamp, { force: true });
    await must("The build failed: the compiler's message is above this line.", workerBuild().path, args, {
      cwd: inRoot(),
      env: toolsEnv(),
    });
    if (!dev) await stripNames(inRoot(outDir, "index_bg.wasm"));
    writeFileSync(stamp, hash);
    say(`built in ${seconds(Date.now() - started)}`);
  });
}

/** The names of functions, which worker-build always keeps, are a seventh of what is deployed. */
async function stripNames(wasm) {
  const args = ["--all-features", "--strip-debug", wasm, "-o", wasm];
  await must("wasm-opt failed: its message is above this line.", localBin("wasm-opt"), args, { cwd: inRoot(), env: toolsEnv() });
}

/** Reads the flags of `npm run build -- …`. */
export function buildOptions(argv) {
  const options = {};
  const rest = [...argv];
  while (rest.length > 0) {
    const flag = rest.shift();
    if (flag === "--dev") options.dev = true;
    else if (flag === "--panic-unwind") options.unwind = true;
    else if (flag === "--features" && rest.length > 0) options.features = rest.shift();
    else if (flag === "--out-dir" && rest.length > 0) options.outDir = rest.shift();
    else throw new Stop(`Unknown option ${flag}: there are --dev, --panic-unwind, --features LIST and --out-dir FOLDER.`);
  }
  return options;
}

/** Without these three worker-build downloads its own copies, and fails where it may not. */
function toolsEnv() {
  return {
    ...process.env,
    PATH: [inRoot("node_modules", ".bin"), process.env.PATH].join(delimiter),
    WASM_BINDGEN_BIN: wasmBindgen().path,
    WASM_OPT_BIN: localBin("wasm-opt"),
    ESBUILD_BIN: inRoot("scripts", "lib", "bundle.mjs"),
    RUST_LIB_BACKTRACE: "0", // worker-build's own stack says nothing about an error in our code.
  };
}
