// The two cargo tools that turn the crate into a Worker, kept in a per-user cache by version, so
// that a second clone does not build them again.
// Never installs into ~/.cargo/bin: another project may need another version there.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { inRoot, toolCache } from "./paths.mjs";
import { ask, must } from "./run.mjs";
import { Stop } from "./say.mjs";

/** The version of a crate in Cargo.lock. */
function lockedVersion(crate) {
  const file = inRoot("Cargo.lock");
  const lock = existsSync(file) ? readFileSync(file, "utf8") : "";
  const version = lock.match(new RegExp(`^name = "${crate}"\\nversion = "([^"]+)"`, "m"))?.[1];
  if (!version) throw new Stop(`Cargo.lock does not name ${crate}: run "cargo generate-lockfile" and try again.`);
  return version;
}

function tool(crate, program, version, minutes, flags) {
  const home = join(toolCache, `${crate}-${version}`);
  return { crate, version, minutes, flags, home, path: join(home, "bin", program) };
}

/**
 * Both go in step with a crate of ours, so Cargo.lock says which version. worker-build is built with
 * its own lock file; that of wasm-bindgen-cli can name releases that were withdrawn, so it isn't used.
 */
export const workerBuild = () => tool("worker-build", "worker-build", lockedVersion("worker"), 4, ["--locked"]);
export const wasmBindgen = () => tool("wasm-bindgen-cli", "wasm-bindgen", lockedVersion("wasm-bindgen"), 4, []);

export const isInstalled = ({ path }) => existsSync(path);

// Quick to compile rather than quick to run: each of the tools works for a second or two per build.
const QUICK_PROFILE = {
  CARGO_PROFILE_RELEASE_OPT_LEVEL: "1",
  CARGO_PROFILE_RELEASE_LTO: "off",
  CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "16",
  CARGO_PROFILE_RELEASE_DEBUG: "0",
};

// Shared, because the tools have crates in common; kept after an interrupt, so that a new try goes on.
const sharedTarget = join(toolCache, "target");

/** Builds one tool beside its place and renames it there: it is there whole or not at all. */
export async function install({ crate, version, flags, home }) {
  mkdirSync(toolCache, { recursive: true });
  removePartials();
  const partial = `${home}.partial-${process.pid}`;
  const env = { ...process.env, ...QUICK_PROFILE };
  delete env.CARGO_BUILD_TARGET;
  await must(
    `cargo could not build ${crate} ${version}: its message is above this line. Run the same command again to go on from there.`,
    "cargo",
    ["install", crate, "--version", `=${version}`, ...flags, "--root", partial, "--target-dir", sharedTarget, "--no-track"],
    { env },
  );
  renameSync(partial, home);
}

export function removeLeftovers() {
  removePartials();
  rmSync(sharedTarget, { recursive: true, force: true });
}

function removePartials() {
  for (const name of readdirSync(toolCache)) {
    if (name.includes(".partial-")) rmSync(join(toolCache, name), { recursive: true, force: true });
  }
}

/** wasm-bindgen refuses a crate built with another version of itself, in many words; say it in few. */
export function checkWasmBindgen() {
  const { path, version, home } = wasmBindgen();
  const found = ask(path, ["--version"]);
  if (found !== `wasm-bindgen ${version}`) {
    throw new Stop(`Cargo.lock wants wasm-bindgen ${version}, but ${path} is "${found}": delete ${home} and try again.`);
  }
}
