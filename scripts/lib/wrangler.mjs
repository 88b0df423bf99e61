// How the scripts call wrangler: the project's own, on a Node that is new enough, quietly.
// Never asks anything and never reports usage.

import { delimiter } from "node:path";
import { createInterface } from "node:readline";
import { inRoot, modernNode } from "./paths.mjs";
import { say } from "./say.mjs";

const entry = inRoot("node_modules", "wrangler", "bin", "wrangler.js");

/** `[program, args, options]` for run() or spawnGroup(). */
export function wranglerCommand(args) {
  const env = {
    ...process.env,
    // wrangler starts node again, and node again starts scripts/build.mjs.
    PATH: [inRoot("node_modules", ".bin"), process.env.PATH].join(delimiter),
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_SEND_ERROR_REPORTS: "false",
    WRANGLER_HIDE_BANNER: "true",
  };
  return [modernNode(), [entry, ...args], { cwd: inRoot(), env }];
}

/** Each port has its sources in a folder of its own: two servers on one would grant each slot twice. */
const stateFolder = (port) => inRoot(".wrangler", port === 8787 ? "state" : `state-${port}`);

/** `wrangler dev` on this machine only, without the look-ups that need the internet. */
export function wranglerDevCommand(port, apiHost) {
  const [program, args, options] = wranglerCommand([
    "dev",
    "--ip", "127.0.0.1",
    "--port", String(port),
    "--inspector-port", "0",
    "--persist-to", stateFolder(port),
    "--show-interactive-dev-session=false",
    "--var", `API_HOST:${apiHost}`,
    "--var", "RUNS_AS:start",
  ]);
  Object.assign(options.env, { CLOUDFLARE_CF_FETCH_ENABLED: "false", WRANGLER_WRITE_LOGS: "false" });
  if (process.stdout.isTTY) options.env.FORCE_COLOR = "1"; // Its output goes through us, see below.
  return [program, args, { ...options, stdio: ["ignore", "pipe", "inherit"] }];
}

/** Passes wrangler's output on. Its request lines hold slot ids, which are secrets: those are cut short. */
export function showWithoutSlotIds(output) {
  const lines = createInterface({ input: output });
  lines.on("line", (line) => say(line.replace(/(\/lock\/[^/\s]{6})[^/\s]+(?=\/)/g, "$1...")));
}
