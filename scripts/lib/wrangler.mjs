// How the scripts call wrangler: the project's own, on a Node that is new enough, quietly.
// Never asks anything and never reports usage.

import { delimiter } from "node:path";
import { inRoot, modernNode } from "./paths.mjs";

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

/** `wrangler dev` on this machine only, without the look-ups that need the internet. */
export function wranglerDevCommand(port, apiHost) {
  const [program, args, options] = wranglerCommand([
    "dev",
    "--ip", "127.0.0.1",
    "--port", String(port),
    "--inspector-port", "0",
    "--show-interactive-dev-session=false",
    "--var", `API_HOST:${apiHost}`,
  ]);
  options.env.CLOUDFLARE_CF_FETCH_ENABLED = "false";
  return [program, args, { ...options, stdio: ["ignore", "inherit", "inherit"] }];
}
