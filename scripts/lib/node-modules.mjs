// Keeps node_modules equal to package-lock.json.
// Never runs "npm install": that may change the lock file.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter } from "node:path";
import { inRoot, modernNode, workerdBinary } from "./paths.mjs";
import { must } from "./run.mjs";
import { Stop } from "./say.mjs";

// Written last, so that an interrupted install is done again. npm itself removes it with the folder.
const stampFile = inRoot("node_modules", ".installed-lock");

const lockHash = () => createHash("sha256").update(readFileSync(inRoot("package-lock.json"))).digest("hex");

export const isInstalled = () => existsSync(stampFile) && readFileSync(stampFile, "utf8") === lockHash();

export async function install() {
  // Not the Node inside node_modules, which npm is about to delete.
  const path = process.env.PATH.split(delimiter).filter((dir) => !dir.endsWith("node_modules/.bin"));
  await must(
    "npm could not install the packages of package-lock.json: its message is above this line.",
    "npm",
    ["ci", "--no-audit", "--no-fund", "--loglevel=error"],
    { cwd: inRoot(), env: { ...process.env, PATH: path.join(delimiter) } },
  );
  modernNode();
  if (!existsSync(workerdBinary())) {
    throw new Stop(`npm has no workerd for ${process.platform}-${process.arch}: use Linux, macOS, or WSL on Windows.`);
  }
  writeFileSync(stampFile, lockHash());
}
