#!/usr/bin/env node
// What worker-build calls in place of esbuild, in the folder where it has put wasm-bindgen's index.js: bundles with our
// entry (src/edge/entry.js) instead of the shim.js that worker-build wrote.

import { spawnSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import { inRoot, localBin } from "./paths.mjs";

copyFileSync(inRoot("src", "edge", "entry.js"), "shim.js");
for (const name of ["together.js", "waits.js"]) copyFileSync(inRoot("src", "edge", name), name);
const { status } = spawnSync(localBin("esbuild"), process.argv.slice(2), { stdio: "inherit" });
process.exitCode = status ?? 1;
