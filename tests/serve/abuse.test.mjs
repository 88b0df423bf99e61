// Callers who mean harm, or can't do better: what is one past each bound, crowds, stale and garbage credentials.
// Sizes are moderate; ABUSE=10 takes ten times as much of everything. Figures are printed for docs/reliability.md.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { Agent } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { randomBytes } from "node:crypto";
import { serve, sleep } from "./support.mjs";

const TIMES = Number(process.env.ABUSE ?? 1);
const TIMEOUT = { timeout: 60_000 * Math.max(2, TIMES) };

let server;

before(async () => {
  server = await serve();
});
after(() => server.end());

/** MiB that workerd takes; 0 where that can't be told. */
function memory() {
  try {
    return Number(readFileSync(`/proc/${server.pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1]) / 1024;
  } catch {
    return 0;
  }
}

const say = (what) => console.log(`abuse: ${what}; workerd has ${memory().toFixed(0)} MiB`);

/** Files of objects: one that was only touched would leave one. */
const objects = () => readdirSync(join(server.data, "objects"), { recursive: true }).filter((name) => name.endsWith(".sqlite")).length;

/** Runs `count` calls, so many at a time. */
async function many(count, atOnce, call) {
  let next = 0;
  const worker = async () => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** A slot id of the right form: a row and a guessed secret. */
const guessed = (row) => {
  const bytes = randomBytes(20);
  bytes.writeUInt32BE(row % 1000);
  return { slotId: bytes.toString("base64url") };
};

test("each bound holds, and one past it is refused with a clear answer", TIMEOUT, async () => {
  const source = await server.createSource("bounds", { concurrency: { limit: 100 } });
  const lock = async (body, headers = {}) =>
    (await server.call("POST", "/pools/bounds/lock/acquire", { headers: { "X-Swarmvia-Key": source.key, ...headers }, body })).status;
  const put = async (settings) => (await server.admin("PUT", "/pools/bounds-too", settings)).status;
  const mint = async (wanted) => (await server.admin("POST", "/pools/bounds/keys", wanted)).status;
  const list = async (limit) => (await server.admin("GET", `/pools?limit=${limit}`)).status;
  const report = async (count) => {
    const headers = Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, "1"]));
    return (await server.release(source, guessed(1), { headers })).status;
  };
  const addresses = (count) => ({ access: { ipAllowlist: Array.from({ length: count }, (_, i) => `10.${i >> 8}.${i & 255}.1`) } });
  const padded = (length) => `{}${" ".repeat(length - 2)}`;
  const cases = [
    ["body", await lock(padded(65_536)), 200, await lock(padded(65_537)), 413],
    ["idempotency key", await lock("", { "Idempotency-Key": "k".repeat(255) }), 200, await lock("", { "Idempotency-Key": "k".repeat(256) }), 400],
    ["waiting time", await lock('{"waitMs":0}'), 200, await lock('{"waitMs":-1}'), 400],
    ["access key", await lock("", { "X-Swarmvia-Key": source.key }), 200, await lock("", { "X-Swarmvia-Key": source.key + "A".repeat(8000) }), 401],
    ["header", await lock("", { "X-Other": "x".repeat(8000) }), 200, await lock("", { "X-Swarmvia-Queue-Timeout-Ms": `${"9".repeat(8000)}x` }), 400],
    ["name of a key", await mint({ name: "n".repeat(100) }), 201, await mint({ name: "n".repeat(101) }), 400],
    ["life of a key", await mint({ ttlMs: 2_592_000_000 }), 201, await mint({ ttlMs: 2_592_000_001 }), 400],
    ["slots", await put({ concurrency: { limit: 3000 } }), 201, await put({ concurrency: { limit: 10_001 } }), 400],
    ["ranges", await put(addresses(1000)), 200, await put(addresses(1001)), 400],
    ["queue", await put({ queue: { maxDepth: 10_000 } }), 200, await put({ queue: { maxDepth: 10_001 } }), 400],
    ["term", await put({ lease: { termMs: 500 } }), 200, await put({ lease: { termMs: 499 } }), 400],
    ["page", await list(1000), 200, await list(1001), 400],
    ["headers of a report", await report(256), 200, await report(257), 400],
  ];
  for (const [what, within, well, past, refused] of cases) assert.deepEqual([within, past], [well, refused], what);

  const path = async (path) => (await server.call("POST", path)).status;
  assert.equal(await path(`/pools/${"a".repeat(63)}/lock/acquire`), 401);
  assert.equal(await path(`/pools/${"a".repeat(64)}/lock/acquire`), 404);
  assert.equal(await path(`/pools/bounds/lock/${"A".repeat(8000)}/renew`), 401);
  assert.equal(await path(`/${"/".repeat(8000)}`), 404);
  assert.equal((await server.renew(source, { slotId: "A".repeat(8000) })).status, 404);
});

test("names that no source has create nothing", TIMEOUT, async () => {
  const known = await server.createSource("known");
  await sleep(700);
  const before = objects();
  const count = 500 * TIMES;
  const startedAt = performance.now();
  await many(count, 32, async (i) => {
    const key = i % 2 === 0 ? known.key : `sv_at_${randomBytes(60).toString("base64url")}`;
    const answer = await server.acquire({ name: `nobody-${i}`, key });
    assert.equal(answer.status, 401);
  });
  await sleep(1500); // What was refused would reach the log by now.
  assert.equal(objects(), before);
  say(`${count} sources that aren't there, in ${Math.round(performance.now() - startedAt)} ms`);
});

test("stale and guessed slot ids write nothing and free nothing", TIMEOUT, async () => {
  const source = await server.createSource("stale", { concurrency: { limit: 3 } });
  const slot = await server.grant(source);
  const before = (await server.admin("GET", "/pools/stale/log?limit=1000")).body.entries.length;
  const count = 1000 * TIMES;
  const startedAt = performance.now();
  await many(count, 32, async (i) => {
    if (i % 2 === 0) assert.deepEqual((await server.release(source, guessed(i), { status: 200 })).body, { released: false });
    else assert.equal((await server.renew(source, guessed(i))).status, 404);
  });
  assert.equal((await server.state(source)).inUse, 1);
  assert.equal((await server.admin("GET", "/pools/stale/log?limit=1000")).body.entries.length, before);
  assert.equal((await server.renew(source, slot)).status, 200);
  say(`${count} stale slot ids in ${Math.round(performance.now() - startedAt)} ms, 0 rows`);
});

test("a crowd that waits is bounded, and answered to the last", TIMEOUT, async () => {
  const count = Math.min(10_000, 300 * TIMES);
  const source = await server.createSource("crowd", { concurrency: { limit: 1 }, queue: { maxDepth: count, timeoutMs: 600_000 } });
  await server.grant(source);
  const idle = memory();
  const body = '{"waitMs":600000}';
  const text = `POST /pools/crowd/lock/acquire HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Swarmvia-Key: ${source.key}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
  const ends = [];
  for (let i = 0; i < count; i += 1) {
    ends.push(
      new Promise((resolve) => {
        const socket = connect({ host: "127.0.0.1", port: server.port });
        let came = "";
        socket.setEncoding("latin1").on("data", (chunk) => (came += chunk));
        socket.on("error", () => resolve("broken"));
        socket.on("close", () => resolve(came.slice(9, 12)));
        socket.write(text);
      }),
    );
    if (i % 50 === 49) await sleep(20);
  }
  for (let tries = 0; (await server.state(source)).queueDepth < count; tries += 1) {
    assert.ok(tries < 1000, "they never all waited");
    await sleep(50);
  }
  const crowded = memory();
  const late = await server.acquire(source, { waitMs: 1000 });
  assert.deepEqual([late.status, late.body.reason], [429, "queue_full"]);
  const startedAt = performance.now();
  assert.equal((await server.admin("DELETE", "/pools/crowd")).status, 200);
  const answers = await Promise.all(ends);
  assert.deepEqual([...new Set(answers)], ["401"]);
  const took = Math.round(performance.now() - startedAt);
  say(`${count} waiters: ${idle.toFixed(0)} MiB before, ${crowded.toFixed(0)} while they wait; all answered within ${took} ms`);
});

test("garbage credentials at full speed harm nobody else, nor their source's log", TIMEOUT, async () => {
  const well = await server.createSource("well", { concurrency: { limit: 5 } });
  const victim = await server.createSource("victim");
  await server.release(victim, await server.grant(victim));
  const attackers = new Agent({ keepAlive: true, maxSockets: 16 });
  const quiet = await rounds(well, 2000);
  let isOver = false;
  let refused = 0;
  const attack = Promise.all(
    Array.from({ length: 16 }, async () => {
      while (!isOver) {
        const key = `sv_at_${randomBytes(90).toString("base64url")}`;
        assert.equal((await server.acquire({ name: "victim", key }, undefined, {}, attackers)).status, 401);
        refused += 1;
      }
    }),
  );
  const busy = await rounds(well, 3000 * TIMES);
  isOver = true;
  await attack;
  attackers.destroy();
  await sleep(1500);
  const { entries } = (await server.admin("GET", "/pools/victim/log?limit=1000")).body;
  const granted = entries.filter((entry) => entry.outcome === "granted").length;
  const omitted = entries.filter((entry) => entry.outcome === "omitted").length;
  assert.equal(granted, 1);
  assert.ok(entries.length < 100 * TIMES * 4, `${entries.length} entries`);
  assert.ok(refused < 100 || omitted > 0);
  say(
    `${refused} garbage keys: beside them p99 ${busy.p99.toFixed(0)} ms over ${busy.count} calls (quiet: ${quiet.p99.toFixed(0)} ms over ${quiet.count}); ${entries.length} log entries`,
  );
  // The machine is the callers' too, so this is a bound for disasters only.
  assert.ok(busy.p99 < 2000 + 20 * quiet.p99);
  const log = (await server.admin("GET", "/pools/well/log?limit=1000")).body.entries;
  assert.ok(log.every((entry) => entry.outcome === "granted"));
});

/** Acquires and releases for a while, one after another. */
async function rounds(source, ms) {
  const took = [];
  const startedAt = performance.now();
  while (performance.now() - startedAt < ms) {
    const calledAt = performance.now();
    const slot = await server.grant(source);
    took.push(performance.now() - calledAt);
    assert.deepEqual((await server.release(source, slot)).body, { released: true });
  }
  took.sort((a, b) => a - b);
  return { count: took.length, p99: took[Math.floor(took.length * 0.99)] };
}
