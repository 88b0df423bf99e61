// What those who wait see: how soon a freed slot is theirs, how busy the slots are, how a crowd is served, how soon the slot
// of a holder who vanished is there again.

import { setTimeout as sleep } from "node:timers/promises";
import { acquire, Line, openLines, release } from "../lib/line.mjs";
import { latency } from "../lib/stats.mjs";

/** By then a call that was sent is in the queue; nothing that is measured begins before. */
const SETTLE_MS = 15;

export const handOff = {
  name: "hand-off",
  title: "hand-off: from sending the release to the next waiter's answer",
  needs: ["locks", "queue"],
  async run({ server, calls, unique }) {
    const source = await server.source(unique("handoff"), { limit: 1 });
    const lines = await openLines(server.port, 2);
    let { id } = await acquire(lines[0], source);
    const took = [];
    for (let i = 0; i < calls / 3; i += 1) {
      const [holder, waiter] = i % 2 === 0 ? lines : lines.toReversed();
      const next = acquire(waiter, source);
      await sleep(SETTLE_MS);
      const sent = performance.now();
      const [, granted] = await Promise.all([release(holder, source, id), next]);
      took.push(granted.at - sent);
      id = granted.id;
    }
    lines.forEach((line) => line.close());
    const { p50, p99 } = latency(took);
    return { "handoff-p50": p50, "handoff-p99": p99 };
  },
};

const JOB = { ms: 50, limit: 2, waiters: 20 };

export const utilisation = {
  name: "utilisation",
  title: `utilisation: ${JOB.waiters} callers with a job of ${JOB.ms} ms each, limit ${JOB.limit}`,
  needs: ["locks"],
  async run({ server, unique }) {
    const source = await server.source(unique("jobs"), { limit: JOB.limit });
    const lines = await openLines(server.port, JOB.waiters);
    let busy = 0;
    const began = performance.now();
    await Promise.all(
      lines.map(async (line) => {
        const { id } = await acquire(line, source);
        const from = performance.now();
        await sleep(JOB.ms);
        // What the job really took: a timer is late by a little, and that isn't idle time.
        busy += performance.now() - from;
        await release(line, source, id);
      }),
    );
    const elapsed = performance.now() - began;
    lines.forEach((line) => line.close());
    return { utilisation: busy / (JOB.limit * elapsed) };
  },
};

const CROWD = 1000;

export const crowd = {
  name: "crowd",
  title: `${CROWD} waiters at one source with one slot, each of whom releases at once`,
  needs: ["locks", "queue"],
  async run({ server, unique, settleMs }) {
    const source = await server.source(unique("crowd"), { limit: 1, depth: CROWD });
    const holder = await Line.open(server.port);
    const { id } = await acquire(holder, source);
    const lines = await openLines(server.port, CROWD);
    const served = lines.map(async (line) => {
      const granted = await acquire(line, source, 120_000);
      await release(line, source, granted.id);
    });
    await sleep(settleMs);
    const began = performance.now();
    await release(holder, source, id);
    await Promise.all(served);
    const seconds = (performance.now() - began) / 1000;
    [holder, ...lines].forEach((line) => line.close());
    return { "crowd-grants": CROWD / seconds };
  },
};

export const reclaim = {
  name: "reclaim",
  title: "reclaim: from the end of a vanished holder's lease to the next waiter's answer",
  needs: ["locks", "queue"],
  async run({ server, unique }) {
    const termMs = server.leastTermMs;
    const source = await server.source(unique("reclaim"), { limit: 1, termMs });
    const [holder, waiter] = await openLines(server.port, 2);
    const { answer } = await acquire(holder, source);
    holder.close();
    const { leaseDeadline } = JSON.parse(answer.body);
    const granted = await acquire(waiter, source);
    const at = performance.timeOrigin + granted.at;
    waiter.close();
    return { "reclaim-ms": at - leaseDeadline };
  },
};
