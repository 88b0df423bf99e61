// Where things are: the project, its local binaries, and the per-user cache.
// Never creates anything; whoever writes to a folder makes it.

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Stop } from "./say.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

export const inRoot = (...parts) => join(root, ...parts);

export const localBin = (name) => inRoot("node_modules", ".bin", name);

// The XDG rule: a relative XDG_CACHE_HOME counts as unset.
const xdg = process.env.XDG_CACHE_HOME ?? "";
export const toolCache = join(isAbsolute(xdg) ? xdg : join(homedir(), ".cache"), "swarmvia-locks");

/**
 * The Node that runs wrangler and vitest. They need 22.12; the Node that runs these scripts may be
 * older, so package.json brings its own as an optional dependency. Where no such package exists for
 * the platform, this very Node will do if it is new enough.
 */
export function modernNode() {
  if (existsSync(localBin("node"))) return localBin("node");
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 12)) return process.execPath;
  throw new Stop(
    `Node ${process.versions.node} is too old for wrangler and npm has none for this platform: install Node 22.12 or newer.`,
  );
}

/** The workerd executable itself, not the wrapper in .bin: signals and the pid must be its own. */
export function workerdBinary() {
  const arch = process.arch === "x64" ? "64" : process.arch;
  return inRoot("node_modules", "@cloudflare", `workerd-${process.platform}-${arch}`, "bin", "workerd");
}
