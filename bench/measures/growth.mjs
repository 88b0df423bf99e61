// How time and memory grow with what is there: held slots, waiters, sources.

import { setTimeout as sleep } from "node:timers/promises";
import { acquire, Line, openLines, release } from "../lib/line.mjs";
import { mostFiles, residentMiB } from "../lib/processes.mjs";
import { latency } from "../lib/stats.mjs";

const HANDS = 50;
const CALLS = 200;
const WAIT_MS = 600_000;

/** Holds so many slots; resolves to their ids. */
export async function hold(server, source, count) {
  const ids = [];
  const lines = await openLines(server.port, Math.min(HANDS, count));
  let left = count;
  await Promise.all(
    lines.map(async (line) => {
      while (left > 0) {
        left -= 1;
        ids.push((await acquire(line, source, 0)).id);
      }
    }),
  );
  lines.forEach((line) => line.close());
  return ids;
}

/** With `count` slots held: resident memory, and a pair by one caller beside them. */
export async function heldSlots(server, name, count) {
  const source = await server.source(name, { limit: count });
  const ids = await hold(server, source, count);
  const memory = residentMiB(server.pid);
  const line = await Line.open(server.port);
  await release(line, source, ids.pop()); // Makes room: there are never more slots than 10,000.
  const took = [];
  for (let i = 0; i < CALLS; i += 1) {
    const sent = performance.now();
    const { id } = await acquire(line, source, 0);
    const freed = await release(line, source, id);
    took.push(freed.at - sent);
  }
  line.close();
  return { memoryMiB: memory, pairP50: latency(took).p50 };
}

/** workerd takes two descriptors for each connection, and ends where there are no more. */
const mostWaiters = () => Math.floor((mostFiles() - 500) / 2);

/** With so many waiters, or as many as the machine lets connect: resident memory, and a hand-off to the first while a newcomer queues at the end. */
export async function waiters(server, name, wanted) {
  const count = Math.min(wanted, mostWaiters());
  const source = await server.source(name, { limit: 1, depth: 10_000 });
  const lines = await openLines(server.port, count + 1);
  let holder = { line: lines[0], ...(await acquire(lines[0], source)) };
  const granted = [];
  let wake = () => {};
  const queueUp = (line) =>
    acquire(line, source, WAIT_MS).then(
      (grant) => {
        granted.push({ line, ...grant });
        wake();
      },
      () => {}, // Closed at the end.
    );
  for (const [i, line] of lines.slice(1).entries()) {
    queueUp(line);
    if (i % 500 === 499) await sleep(20);
  }
  await sleep(500 + count / 4);
  const memory = residentMiB(server.pid);
  const took = [];
  for (let i = 0; i < CALLS; i += 1) {
    const woken = new Promise((resolve) => (wake = resolve));
    const sent = performance.now();
    await release(holder.line, source, holder.id);
    if (granted.length === 0) await woken;
    const next = granted.shift();
    took.push(next.at - sent);
    queueUp(holder.line);
    await sleep(5);
    holder = next;
  }
  lines.forEach((line) => line.close());
  await sleep(500);
  return { count, memoryMiB: memory, handOffP50: latency(took).p50 };
}

/** With `count` sources made and used once: resident memory, and a pair at one of them. */
export async function sources(server, name, count) {
  const made = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(8, count) }, async () => {
      while (next < count) {
        const source = await server.source(`${name}-${(next += 1)}`, { limit: 10 });
        // A connection each: one that idles while a source is made may be closed just when it is used again.
        const line = await Line.open(server.port);
        const { id } = await acquire(line, source, 0);
        await release(line, source, id);
        line.close();
        made.push(source);
      }
    }),
  );
  const memory = residentMiB(server.pid);
  const line = await Line.open(server.port);
  const took = [];
  for (let i = 0; i < CALLS; i += 1) {
    const sent = performance.now();
    const { id } = await acquire(line, made[0], 0);
    took.push((await release(line, made[0], id)).at - sent);
  }
  line.close();
  return { memoryMiB: memory, pairP50: latency(took).p50 };
}
