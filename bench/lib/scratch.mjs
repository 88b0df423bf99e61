// What a run leaves lying about if it is cut off: its folders, and servers that stand still and would do so for ever. All of
// it goes when this process does, whatever ends it.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders = new Set();
const groups = new Set();

/** Memory that looks like a disk, where there is such a place. */
export const memory = () => (existsSync("/dev/shm") ? "/dev/shm" : tmpdir());

/** Runs `work(folder)` on a new folder that is gone afterwards. */
export async function withFolder(work, where = tmpdir()) {
  const folder = mkdtempSync(join(where, "swarmvia-bench-"));
  folders.add(folder);
  try {
    return await work(folder);
  } finally {
    remove(folder);
    folders.delete(folder);
  }
}

const remove = (folder) => rmSync(folder, { recursive: true, force: true });

/** A process group that must not outlive us. */
export function mustEndWithUs(group) {
  groups.add(group.pid);
  group.exited.then(() => groups.delete(group.pid));
}

process.on("exit", () => {
  for (const pid of groups) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // It has just ended.
    }
  }
  folders.forEach(remove);
});
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => process.exit(130));
