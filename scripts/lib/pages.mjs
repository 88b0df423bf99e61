// Builds the dashboard and the API docs, with Vite, into build-pages/: what [assets] of wrangler.toml
// uploads and `npm run serve` serves. Does nothing when its inputs are unchanged.

import { rmSync, writeFileSync } from "node:fs";
import { inputsHash, isFresh } from "./inputs.mjs";
import { withLock } from "./lock.mjs";
import { inRoot, modernNode } from "./paths.mjs";
import { must } from "./run.mjs";
import { say, seconds } from "./say.mjs";

export const PAGES = "build-pages";
/** Each is a mode of dashboard/vite.config.mjs, a folder of `PAGES` and a path on the API hosts. */
export const SITES = ["dashboard", "docs"];

const stamp = inRoot(PAGES, ".inputs");
const product = inRoot(PAGES, "docs", "index.html");
const hash = () => inputsHash(["package-lock.json", "scripts/lib/pages.mjs"], ["dashboard"]);

export async function buildPages() {
  if (isFresh(stamp, product, hash())) return;
  await withLock(inRoot(PAGES, ".lock"), "build of the pages", async () => {
    const before = hash(); // Before the build: an edit made during it must count as a change.
    if (isFresh(stamp, product, before)) return;
    say(`building the dashboard and the API docs into ${PAGES}/`);
    const started = Date.now();
    for (const site of SITES) {
      const args = [inRoot("node_modules", "vite", "bin", "vite.js"), "build", "--config", "dashboard/vite.config.mjs", "--mode", site];
      await must(`The page ${site} was not built: Vite's message is above this line.`, modernNode(), args, { cwd: inRoot() });
    }
    rmSync(stamp, { force: true });
    writeFileSync(stamp, before);
    // Both are in the folder that is uploaded.
    writeFileSync(inRoot(PAGES, ".assetsignore"), ".inputs\n.lock*\n.assetsignore\n");
    say(`built in ${seconds(Date.now() - started)}`);
  });
}
