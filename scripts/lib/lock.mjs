// A lock between processes: a file that names the process that holds it.
// Never waits for a process that no longer lives, so an interrupted run blocks nobody.

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { say } from "./say.mjs";

const POLL_MS = 200;

/** Runs `body` while no other process runs one under the same `file`. `what` names it to a waiter. */
export async function withLock(file, what, body) {
  mkdirSync(dirname(file), { recursive: true });
  let told = false;
  while (!take(file)) {
    const holder = holderOf(file);
    if (holder !== null && !isAlive(holder)) {
      clearAway(file, holder);
      continue;
    }
    if (!told) say(`waiting for another ${what} (process ${holder ?? "unknown"}, ${file}) ...`);
    told = true;
    await sleep(POLL_MS);
  }
  try {
    return await body();
  } finally {
    rmSync(file, { force: true });
  }
}

/** Written aside and linked into place, so that the file is never seen without its pid. */
function take(file) {
  const mine = `${file}.${process.pid}`;
  writeFileSync(mine, String(process.pid));
  try {
    linkSync(mine, file);
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    return false;
  } finally {
    rmSync(mine, { force: true });
  }
}

function holderOf(file) {
  try {
    return Number(readFileSync(file, "utf8"));
  } catch {
    return null; // Released between our attempt and this look.
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Removes a dead process's lock. Another waiter may have done so and taken it: then give it back. */
function clearAway(file, deadPid) {
  const aside = `${file}.stale.${process.pid}`;
  try {
    renameSync(file, aside);
    if (holderOf(aside) !== deadPid) linkSync(aside, file);
  } catch {
    // Someone else cleared it first.
  }
  rmSync(aside, { force: true });
}
