// Callers who mean harm, or can't do better: what is one past each bound, names that nobody has, a crowd that is sent away.
// Sizes are moderate; ABUSE=10 takes ten times as much of everything. Figures are printed for docs/reliability.md.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { many, memory, mostConnections, objects } from "./figures.mjs";
import { serve, sleep } from "./support.mjs";

const TIMES = Number(process.env.ABUSE ?? 1);
const TIMEOUT = { timeout: 60_000 * Math.max(2, TIMES) };

let server;

before(async () => {
  server = await serve();
});
after(() => server.end());

const say = (what) => console.log(`abuse: ${what}; workerd has ${memory(server)} MiB`);

/** A slot id of the right form, which nobody was given. */
const guessed = () => ({ slotId: randomBytes(20).toString("base64url") });

test("each bound holds, and one past it is refused with a clear answer", TIMEOUT, async () => {
  const source = await server.createSource("bounds", { concurrency: { limit: 100 } });
  const lock = async (body, headers = {}) =>
    (await server.call("POST", "/pools/bounds/lock/acquire", { headers: { "X-Swarmvia-Key": source.key, ...headers }, body })).status;
  const put = async (settings) => (await server.admin("PUT", "/pools/bounds-too", settings)).status;
  const mint = async (wanted) => (await server.admin("POST", "/pools/bounds/keys", wanted)).status;
  const list = async (limit) => (await server.admin("GET", `/pools?limit=${limit}`)).status;
  const report = async (count) => {
    const headers = Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, "1"]));
    return (await server.release(source, guessed(), { headers })).status;
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
  const before = objects(server).length;
  const count = 500 * TIMES;
  const startedAt = performance.now();
  await many(count, 32, async (i) => {
    const key = i % 2 === 0 ? known.key : `sv_at_${randomBytes(60).toString("base64url")}`;
    const answer = await server.acquire({ name: `nobody-${i}`, key });
    assert.equal(answer.status, 401);
  });
  await sleep(1500); // What was refused would reach the log by now.
  assert.equal(objects(server).length, before);
  say(`${count} sources that aren't there, in ${Math.round(performance.now() - startedAt)} ms`);
});

test("a crowd that waits is bounded, and answered to the last", TIMEOUT, async () => {
  const count = Math.min(mostConnections(), 300 * TIMES);
  const source = await server.createSource("crowd", { concurrency: { limit: 1 }, queue: { maxDepth: count, timeoutMs: 600_000 } });
  await server.grant(source);
  const idle = memory(server);
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
  for (let tries = 0, depth = 0; depth < count; tries += 1) {
    depth = (await server.state(source)).queueDepth;
    assert.ok(tries < 1000, `only ${depth} of ${count} came to wait`);
    await sleep(50);
  }
  const crowded = memory(server);
  const late = await server.acquire(source, { waitMs: 1000 });
  assert.deepEqual([late.status, late.body.reason], [429, "queue_full"]);
  const startedAt = performance.now();
  assert.equal((await server.admin("DELETE", "/pools/crowd")).status, 200);
  const answers = await Promise.all(ends);
  assert.deepEqual([...new Set(answers)], ["401"]);
  const took = Math.round(performance.now() - startedAt);
  say(`${count} waiters: ${idle} MiB before, ${crowded} while they wait; all answered within ${took} ms`);
});
