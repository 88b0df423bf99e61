// The browser of the dashboard's tests: Debian's Chromium, or the one that CHROMIUM names.
// Installed where that can be done without asking (root, with apt). Never downloaded by other ways.

import { existsSync } from "node:fs";
import { onPath, run } from "./run.mjs";
import { say } from "./say.mjs";

const DEBIANS = "/usr/bin/chromium";

export const chromiumPath = () => [process.env.CHROMIUM, DEBIANS].find((path) => path && existsSync(path)) ?? null;

/** The path of a browser, or null where there is none and none could be installed. */
export async function ensureChromium() {
  if (!chromiumPath() && process.getuid?.() === 0 && onPath("apt-get")) {
    say("installing Debian's chromium, for the tests of the dashboard (once)");
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    await run("apt-get", ["update", "-qq"], { env });
    await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium"], { env });
  }
  return chromiumPath();
}
