// What the tests of crowds and floods share: how much at most, how much the server takes, how long a caller waits.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** A size from the environment, as in `WAITERS=10000`, or a moderate one. */
export const size = (name, otherwise) => Number(process.env[name] ?? otherwise);

/** Files and sockets that one process may have open here. */
const mostFiles = () => Number(execFileSync("sh", ["-c", "ulimit -n"], { encoding: "utf8" })) || Infinity;

/** workerd takes two descriptors for each connection; a few hundred are for the databases and for everybody else. */
export const mostConnections = () => Math.floor((mostFiles() - 200) / 2);

/** MiB that workerd takes; 0 where that can't be told. */
export function memory(server) {
  try {
    return Math.round(Number(readFileSync(`/proc/${server.pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1]) / 1024);
  } catch {
    return 0;
  }
}

/** Files of objects: one that was only touched would leave one. */
export function objects(server) {
  const folder = join(server.data, "objects");
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, name))
    .filter((name) => name.endsWith(".sqlite"));
}

/** KiB on disk of everything that is stored. */
export function stored(server) {
  const folder = join(server.data, "objects");
  const files = readdirSync(folder, { recursive: true }).map((name) => statSync(join(folder, name), { throwIfNoEntry: false }));
  return Math.round(files.reduce((sum, file) => sum + (file?.isFile() ? file.size : 0), 0) / 1024);
}

/** Runs `count` calls, so many at a time. */
export async function many(count, atOnce, call) {
  let next = 0;
  const worker = async (hand) => {
    while (next < count) await call(next++, hand);
  };
  await Promise.all(Array.from({ length: atOnce }, (_, hand) => worker(hand)));
}

/** Acquires and releases, one after another, until `isOver`: how many times, and how long a grant took at most times. */
export async function rounds(server, source, isOver) {
  const took = [];
  while (!isOver()) {
    const calledAt = performance.now();
    const slot = await server.grant(source);
    took.push(performance.now() - calledAt);
    assert.deepEqual((await server.release(source, slot)).body, { released: true });
  }
  took.sort((a, b) => a - b);
  return { count: took.length, p50: at(took, 0.5), p99: at(took, 0.99) };
}

export const forMs = (ms) => {
  const until = performance.now() + ms;
  return () => performance.now() >= until;
};

/** The value that this share of a sorted list doesn't exceed. */
export const at = (sorted, share) => Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]?.toFixed(1));

/** All pages of a list, which is called `what`; `cursor` is how the next page is asked for. */
export async function pages(server, path, what, cursor) {
  const all = [];
  let slowest = 0;
  for (let next; ; ) {
    const calledAt = performance.now();
    const page = await server.admin("GET", `${path}?limit=1000${next === undefined ? "" : `&${cursor}=${next}`}`);
    slowest = Math.max(slowest, performance.now() - calledAt);
    assert.equal(page.status, 200);
    assert.ok(page.body[what].length <= 1000);
    all.push(...page.body[what]);
    next = page.body.next;
    if (next === undefined || next === null) return { all, slowestMs: Math.round(slowest) };
  }
}
