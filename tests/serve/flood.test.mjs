// Floods beside a caller who behaves: slot ids that aren't held, and garbage credentials, as fast as they come.
// STALE=1000000 sends so many slot ids, FLOOD_MS=60000 garbage keys for so long; figures are for docs/reliability.md.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { openLines } from "../../bench/lib/line.mjs";
import { forMs, many, memory, pages, rounds, size, stored } from "./figures.mjs";
import { lockText, serve, sleep } from "./support.mjs";

const STALE = size("STALE", 6000);
const FLOOD_MS = size("FLOOD_MS", 3000);
const QUIET_MS = 2000;
const HANDS = 16;
/** Leases that outlast a flood if they are renewed now and then, and a machine that stands still for a while. */
const LONG = { lease: { termMs: 600_000, requestTimeoutMs: 86_400_000 } };
const RENEW_EVERY = 10_000;

let server;

before(async () => {
  server = await serve();
});
after(() => server.end());

const request = (source, path) =>
  `POST /pools/${source.name}/lock/${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Swarmvia-Key: ${source.key}\r\nContent-Length: 0\r\n\r\n`;

/** A row and a guessed secret: the form is right. */
function guessed(row) {
  const bytes = randomBytes(20);
  bytes.writeUInt32BE(row);
  return bytes.toString("base64url");
}

/** Someone who behaves, alone and then beside `attack`. The machine is the attackers' too, so there is a bound for disasters only. */
async function beside(well, attack) {
  const quiet = await rounds(server, well, forMs(QUIET_MS));
  let isOver = false;
  const attacked = attack().finally(() => (isOver = true));
  const busy = await rounds(server, well, () => isOver);
  const result = await attacked;
  assert.ok(busy.p99 < 2000 + 20 * quiet.p99, `p99 ${busy.p99} ms`);
  const { all } = await pages(server, `/pools/${well.name}/log`, "entries", "before");
  const calls = quiet.count + busy.count;
  assert.ok(all.every((entry) => entry.outcome === "granted"));
  assert.ok(all.length >= Math.min(calls, 10_000) && all.length <= calls, `${all.length} entries of ${calls} calls`);
  return { ...result, text: `p99 ${busy.p99} ms over ${busy.count} calls (alone ${quiet.p99} ms over ${quiet.count})` };
}

test("slot ids that aren't held write nothing, free nothing and cost nobody else", { timeout: 60_000 + 2 * STALE }, async () => {
  const well = await server.createSource("well", { concurrency: { limit: 5 }, ...LONG });
  const other = await server.createSource("other", LONG);
  const source = await server.createSource("stale", { concurrency: { limit: 3 }, ...LONG });
  const held = await server.grant(source);
  const released = await server.grant(source);
  assert.deepEqual((await server.release(source, released)).body, { released: true });
  const elsewhere = await server.grant(other);
  const ids = [
    (i) => guessed(i % 1000), // a row that may be held
    () => randomBytes(20).toString("base64url"), // any row
    () => released.slotId,
    () => elsewhere.slotId,
    () => held.slotId.slice(0, -1) + (held.slotId.endsWith("A") ? "B" : "A"), // all but a bit
    () => randomBytes(9).toString("hex"), // no slot id
  ];
  const log = await pages(server, "/pools/stale/log", "entries", "before");
  const before = { memory: memory(server), stored: 0 };
  await sleep(500);

  const { tookMs, text } = await beside(well, async () => {
    before.stored = stored(server);
    const lines = await openLines(server.port, HANDS);
    const startedAt = performance.now();
    await many(STALE, HANDS, async (i, hand) => {
      if (i % RENEW_EVERY === 0) {
        assert.equal((await server.renew(source, held)).status, 200);
        assert.equal((await server.renew(other, elsewhere)).status, 200);
      }
      const slot = ids[i % ids.length](i);
      const verb = Math.floor(i / ids.length) % 2 === 0 ? "release" : "renew";
      const answer = await lines[hand].send(request(source, `${slot}/${verb}`));
      if (verb === "renew") assert.equal(answer.status, 404);
      else assert.deepEqual([answer.status, answer.body], [200, '{"released":false}']);
    });
    lines.forEach((line) => line.close());
    return { tookMs: performance.now() - startedAt };
  });

  assert.equal((await server.state(source)).inUse, 1);
  assert.equal((await server.state(other)).inUse, 1);
  assert.deepEqual((await pages(server, "/pools/stale/log", "entries", "before")).all, log.all);
  assert.equal((await server.renew(source, held)).status, 200);
  const rate = Math.round(STALE / (tookMs / 1000));
  console.log(
    `flood: ${STALE} stale slot ids in ${Math.round(tookMs / 1000)} s, ${rate}/s, 0 rows; beside them ${text}; ` +
      `workerd ${before.memory} MiB before, ${memory(server)} after; on disk ${before.stored} KiB, ${stored(server)}`,
  );
  // It grows to what the runtime lets garbage grow to, and no further.
  assert.ok(memory(server) < 600);
});

test("garbage credentials at full speed harm nobody else, nor their source's log", { timeout: 60_000 + 2 * FLOOD_MS }, async () => {
  const well = await server.createSource("well-too", { concurrency: { limit: 5 }, ...LONG });
  const victim = await server.createSource("victim");
  await server.release(victim, await server.grant(victim));

  const { refused, text } = await beside(well, async () => {
    const lines = await openLines(server.port, HANDS);
    const isOver = forMs(FLOOD_MS);
    let refused = 0;
    const attacker = async (line) => {
      for (; !isOver(); refused += 1) {
        const key = `sv_at_${randomBytes(90).toString("base64url")}`;
        assert.equal((await line.send(lockText({ name: "victim", key }, ""))).status, 401);
      }
      line.close();
    };
    await Promise.all(lines.map(attacker));
    return { refused };
  });

  await sleep(1500); // What was refused would reach the log by now.
  const { all } = await pages(server, "/pools/victim/log", "entries", "before");
  const count = (outcome) => all.filter((entry) => entry.outcome === outcome).length;
  assert.equal(count("granted"), 1);
  // Their ring: a tenth of what the source keeps, and the block that is being written.
  assert.ok(all.length < 1000 + 64 + 1, `${all.length} entries`);
  assert.ok(refused < 100 || count("omitted") > 0);
  console.log(`flood: ${refused} garbage keys in ${FLOOD_MS / 1000} s; beside them ${text}; ${all.length} log entries; workerd ${memory(server)} MiB`);
});
