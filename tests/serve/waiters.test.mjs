// A queue as long as it may get, over real sockets: all come to wait, a freed slot goes to the first, and all others are
// told in time that there was none. WAITERS=10000 takes the longest queue there may be; figures are for docs/reliability.md.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Line, openLines } from "../../bench/lib/line.mjs";
import { at, memory, mostConnections, pages, size } from "./figures.mjs";
import { lockText, serve, sleep } from "./support.mjs";

const WANTED = size("WAITERS", 2000);
// Where there are no more descriptors, workerd breaks connections off, or ends: docs/reliability.md.
const COUNT = Math.min(WANTED, mostConnections());
const BATCH = 100;
const HAND_OVERS = 100;
/** Enough for all to come, and for the hand-overs. */
const WAIT_MS = 10_000 + COUNT * 3;

let server;

before(async () => {
  server = await serve();
});
after(() => server.end());

test(`${COUNT} callers wait at one source: the first get what is released, all others 504 by their deadline`, { timeout: 180_000 }, async () => {
  if (COUNT < WANTED) console.log(`waiters: ${COUNT} of ${WANTED}, as each takes two of workerd's file descriptors (ulimit -n)`);
  const source = await server.createSource("long", {
    concurrency: { limit: 1 },
    queue: { maxDepth: COUNT, timeoutMs: 600_000 },
    lease: { termMs: 600_000 },
    log: { keep: 100_000 },
  });
  let slot = await server.grant(source);
  const lines = await openLines(server.port, COUNT);
  const idle = memory(server);

  // All deadlines are one moment: it can't be harder. A batch has come before the next is sent, so the order is known.
  const startedAt = performance.now();
  const until = startedAt + WAIT_MS;
  const granted = [];
  const rest = [];
  let wake = () => {};
  for (let first = 0; first < COUNT; first += BATCH) {
    for (const [i, line] of lines.slice(first, first + BATCH).entries()) {
      const body = JSON.stringify({ waitMs: Math.floor(until - performance.now()) });
      line.send(lockText(source, body)).then((answer) => {
        if (answer.status !== 200) return rest.push({ status: answer.status, late: answer.at - until });
        granted.push({ ...answer, batch: Math.floor((first + i) / BATCH) });
        return wake();
      });
    }
    await server.untilDepth(source, Math.min(COUNT, first + BATCH));
  }
  const cameMs = Math.round(performance.now() - startedAt);
  const crowded = memory(server);
  const refused = await server.acquire(source, { waitMs: 1000 });
  assert.deepEqual([refused.status, refused.body.reason], [429, "queue_full"]);

  // One after another, on a connection of the releaser's own.
  const releaser = await Line.open(server.port);
  const took = [];
  for (let i = 0; i < HAND_OVERS; i += 1) {
    const came = new Promise((resolve) => (wake = resolve));
    const sentAt = performance.now();
    const path = `POST /pools/long/lock/${slot.slotId}/release HTTP/1.1\r\nHost: 127.0.0.1`;
    const freed = await releaser.send(`${path}\r\nX-Swarmvia-Key: ${source.key}\r\nContent-Length: 0\r\n\r\n`);
    assert.deepEqual(JSON.parse(freed.body), { released: true });
    if (granted.length === i) await came;
    assert.equal(granted.length, i + 1, "one slot, one grant");
    took.push(granted[i].at - sentAt);
    slot = JSON.parse(granted[i].body);
  }
  releaser.close();
  const batches = granted.map(({ batch }) => batch);
  assert.deepEqual(batches, [...batches].sort((a, b) => a - b), "first come, first served");
  assert.equal((await server.state(source)).queueDepth, COUNT - HAND_OVERS);
  assert.ok(performance.now() < until, "the machine was too slow to hand over before the deadline");

  while (granted.length + rest.length < COUNT) {
    assert.ok(performance.now() < until + 30_000, `${COUNT - granted.length - rest.length} were not answered`);
    await sleep(50);
  }
  assert.equal(granted.length, HAND_OVERS);
  assert.deepEqual([...new Set(rest.map(({ status }) => status))], [504]);
  const late = rest.map((answer) => answer.late).sort((a, b) => a - b);
  assert.ok(late[0] > -20, `told ${-late[0]} ms too early`);
  took.sort((a, b) => a - b);
  const { inUse, queueDepth } = await server.state(source);
  assert.deepEqual({ inUse, queueDepth }, { inUse: 1, queueDepth: 0 });
  lines.forEach((line) => line.close());

  // Each attempt is in the log, once: the first holder, the one refused, the waiters.
  const { all } = await pages(server, "/pools/long/log", "entries", "before");
  const outcomes = Object.groupBy(all, ({ outcome }) => outcome);
  const counts = Object.fromEntries(Object.entries(outcomes).map(([outcome, entries]) => [outcome, entries.length]));
  assert.deepEqual(counts, { granted: 1 + HAND_OVERS, queue_full: 1, queue_timeout: COUNT - HAND_OVERS });
  assert.equal(new Set(all.map(({ requestId }) => requestId)).size, COUNT + 2);
  console.log(
    `waiters: ${COUNT} queued in ${cameMs} ms; workerd ${idle} MiB with their connections, ${crowded} while they wait; ` +
      `hand-over p50 ${at(took, 0.5)} ms, worst ${at(took, 1)}; the last 504 ${at(late, 1)} ms after its deadline`,
  );
  // The machine is the callers' too, so this is a bound for disasters only.
  assert.ok(late.at(-1) < 5000 + COUNT);
});
