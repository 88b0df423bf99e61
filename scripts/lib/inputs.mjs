// Whether a build is up to date: a hash over all that goes into it, kept beside what came out.
// Never looks at times: a fresh clone or a switched branch has new ones for old content.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inRoot } from "./paths.mjs";

/** Over the contents of `files` and of all that is under `folders`, those that exist, and `args`. */
export function inputsHash(files, folders, args = []) {
  const hash = createHash("sha256").update(JSON.stringify(args));
  for (const file of [...files.filter((name) => existsSync(inRoot(name))), ...folders.flatMap(filesUnder)]) {
    const content = readFileSync(inRoot(file));
    hash.update(`\n${file} ${content.length}\n`).update(content);
  }
  return hash.digest("hex");
}

/** Whether `product` is there and was made from inputs of that hash. */
export const isFresh = (stamp, product, hash) =>
  existsSync(product) && existsSync(stamp) && readFileSync(stamp, "utf8") === hash;

/** Paths in the project of all files under a folder, in a fixed order. */
export function filesUnder(folder) {
  if (!existsSync(inRoot(folder))) return [];
  return readdirSync(inRoot(folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? filesUnder(path) : [path];
    });
}
