#!/usr/bin/env node
// What worker-build calls in place of esbuild, in the folder where it has put wasm-bindgen's index.js: bundles that with
// our JavaScript (worker/) and our entry instead of the shim.js that worker-build wrote.

import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { parse } from "yaml";
import { inRoot, localBin } from "./paths.mjs";

cpSync(inRoot("worker"), "worker", { recursive: true, filter: (name) => !name.endsWith(".mjs") });
writeFileSync("worker/openapi.json", JSON.stringify(parse(readFileSync(inRoot("openapi.yaml"), "utf8"))));
writeFileSync("shim.js", 'export * from "./worker/entry.js";\nexport { default } from "./worker/entry.js";\n');
writeFileSync("index.js", withoutRepeats(readFileSync("index.js", "utf8")));

const ours = ["--alias:wasm=./index.js", "--loader:.json=text", "--log-override:duplicate-object-key=error"];
const { status } = spawnSync(localBin("esbuild"), [...process.argv.slice(2), ...ours], { stdio: "inherit" });
rmSync("worker", { recursive: true });
process.exitCode = status ?? 1;

/** wasm-bindgen lists a module once for each function that needs no glue, and every bundler then warns of the repeats. */
function withoutRepeats(script) {
  const seen = new Set();
  return script.replace(/^\s*"(\.\/worker\/[^"]+)": import\d+,\n/gm, (line, module) => {
    if (seen.has(module)) return "";
    seen.add(module);
    return line;
  });
}
