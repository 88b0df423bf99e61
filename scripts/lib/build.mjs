// Builds the Worker (Rust to wasm, plus worker-build's JavaScript shim) into build/.
// Does nothing when its inputs are unchanged. Never leaves a half-written build marked as good.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { wasmBindgen, workerBuild } from "./cargo-tools.mjs";
import { withLock } from "./lock.mjs";
import { inRoot, localBin } from "./paths.mjs";
import { must } from "./run.mjs";
import { say, seconds, Stop } from "./say.mjs";
import { setup } from "./setup.mjs";

const INPUT_FILES = ["Cargo.toml", "Cargo.lock", "build.rs", "openapi.yaml", "package-lock.json", "scripts/lib/build.mjs"];
const INPUT_FOLDERS = ["src", ".cargo"];

/** Options: `outDir` (under the project), `dev` for an unoptimised build, `unwind` for one in which panics unwind, cargo `features`. */
export async function build({ outDir = "build", dev = false, unwind = false, features = "" } = {}) {
  await setup();
  const args = [dev ? "--dev" : "--release", "--out-dir", outDir];
  if (unwind) args.push("--panic-unwind");
  if (features) args.push("--", "--features", features);

  const stamp = inRoot(outDir, ".inputs");
  if (isFresh(stamp, outDir, inputsHash(args))) return;
  await withLock(inRoot(outDir, ".lock"), "build", async () => {
    const hash = inputsHash(args); // Before the build: an edit made during it must count as a change.
    if (isFresh(stamp, outDir, hash)) return;
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
    ESBUILD_BIN: localBin("esbuild"),
    RUST_LIB_BACKTRACE: "0", // worker-build's own stack says nothing about an error in our code.
  };
}

function isFresh(stamp, outDir, hash) {
  return existsSync(inRoot(outDir, "index.js")) && existsSync(stamp) && readFileSync(stamp, "utf8") === hash;
}

function inputsHash(args) {
  const hash = createHash("sha256").update(JSON.stringify(args));
  const files = [...INPUT_FILES.filter((file) => existsSync(inRoot(file))), ...INPUT_FOLDERS.flatMap(filesUnder)];
  for (const file of files) {
    const content = readFileSync(inRoot(file));
    hash.update(`\n${file} ${content.length}\n`).update(content);
  }
  return hash.digest("hex");
}

function filesUnder(folder) {
  if (!existsSync(inRoot(folder))) return [];
  return readdirSync(inRoot(folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? filesUnder(path) : [path];
    });
}
