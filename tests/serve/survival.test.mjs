// kill -9 while slots are held and calls wait: after a restart the promises still hold.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { serve, sleep, tally } from "./support.mjs";

let server;

beforeEach(async () => {
  server = await serve();
});
afterEach(() => server.end());

test("after kill -9 held slots renew, no grant exceeds the limit, and abandoned ones come free at their deadlines without traffic", async () => {
  const source = await server.createSource("held", { concurrency: { limit: 2 }, lease: { termMs: 4000, requestTimeoutMs: 60_000 } });
  const [kept, abandoned] = [await server.grant(source), await server.grant(source)];
  const waiting = [server.acquire(source, { waitMs: 20_000 }), server.acquire(source, { waitMs: 20_000 })].map((call) =>
    call.catch(() => "lost"),
  );
  await server.untilDepth(source, 2);
  await server.kill();
  assert.deepEqual(await Promise.all(waiting), ["lost", "lost"]);
  await server.start();

  const refused = await server.acquire(source);
  assert.deepEqual([refused.status, refused.body.reason], [429, "no_free_slot"]);
  const renewed = await server.renew(source, kept);
  assert.equal(renewed.status, 200);
  assert.ok(renewed.body.leaseDeadline > kept.leaseDeadline);

  // This call waits in silence: nothing but the abandoned lease's end can wake it.
  const next = await server.grant(source, { waitMs: 10_000 });
  const grantedAt = next.leaseDeadline - next.termMs;
  assert.ok(grantedAt >= abandoned.leaseDeadline, "granted while the lease still ran");
  assert.ok(grantedAt < abandoned.leaseDeadline + 1000, "granted late");
  assert.equal((await server.renew(source, abandoned)).status, 404);
  assert.equal((await server.renew(source, kept)).status, 200);
  assert.equal((await server.acquire(source)).status, 429);
});

test("a lease that ends while the server is down has ended", async () => {
  const source = await server.createSource("down", { concurrency: { limit: 1 }, lease: { termMs: 500 } });
  const slot = await server.grant(source);
  await server.kill();
  await sleep(Math.max(0, slot.leaseDeadline - Date.now()) + 20);
  await server.start();
  assert.equal((await server.renew(source, slot)).status, 404);
  assert.deepEqual((await server.release(source, slot)).body, { released: false });
  await server.grant(source);
});

test("abandoned slots come free with nobody waiting and nobody asking, also after kill -9", async () => {
  const source = await server.createSource("silent", { concurrency: { limit: 3 }, lease: { termMs: 1500 } });
  for (let i = 0; i < 3; i += 1) await server.grant(source);
  await server.kill();
  await server.start();
  const { slots } = (await server.admin("GET", "/pools/silent/slots")).body;
  assert.equal(slots.length, 3);
  await sleep(Math.max(...slots.map((slot) => slot.leaseDeadline)) - Date.now() + 1000);
  assert.deepEqual((await server.admin("GET", "/pools/silent/slots")).body, { slots: [], next: null });
  assert.equal((await server.state(source)).remainingSlots, 3);
});

test("the RPM window, the cool-down, idempotency keys, live and revoked keys survive kill -9", async () => {
  const rpm = await server.createSource("rpm", { rpm: { limit: 3 } });
  const startedAt = Date.now();
  for (let i = 0; i < 3; i += 1) await server.release(rpm, await server.grant(rpm));
  const cool = await server.createSource("cool");
  await server.release(cool, await server.grant(cool), { status: 429, retryAfterMs: 60_000 });
  const { cooldownUntil } = await server.state(cool);
  const named = await server.createSource("named");
  const slot = await server.grant(named, {}, { "Idempotency-Key": "job-1" });
  const revoked = await server.createSource("revoked");
  assert.equal((await server.admin("DELETE", `/pools/revoked/keys/${revoked.keyId}`)).status, 200);
  await server.kill();
  await server.start();

  const overMinute = await server.acquire(rpm);
  assert.deepEqual([overMinute.status, overMinute.body.reason], [429, "rpm"]);
  assert.ok(overMinute.body.retryAfterMs > 60_000 - (Date.now() - startedAt) - 50);
  const tooEarly = await server.acquire(cool);
  assert.deepEqual([tooEarly.status, tooEarly.body.reason], [429, "cooldown"]);
  assert.equal((await server.state(cool)).cooldownUntil, cooldownUntil);
  const again = await server.acquire(named, {}, { "Idempotency-Key": "job-1" });
  assert.deepEqual([again.body, again.headers["x-swarmvia-replayed"]], [slot, "true"]);
  assert.equal((await server.acquire(revoked)).status, 401);
});

test("a crowd across two kills never overlaps above the limit, and everyone is served in the end", async () => {
  const source = await server.createSource("chaos", {
    concurrency: { limit: 4 },
    lease: { termMs: 1000, requestTimeoutMs: 60_000 },
    queue: { maxDepth: 500 },
  });
  const seen = tally();
  let served = 0;

  /** Repeats a call until it is answered, as a caller would whose connection was lost. */
  async function insist(call) {
    for (;;) {
      try {
        const answer = await call();
        if (answer.status !== 503) return answer;
      } catch {
        // The server is down.
      }
      await sleep(20);
    }
  }

  async function caller(i) {
    for (let round = 0; round < 5; round += 1) {
      const headers = { "Idempotency-Key": `job-${i}-${round}` };
      const { status, body } = await insist(() => server.acquire(source, { waitMs: 20_000 }, headers));
      assert.equal(status, 200, JSON.stringify(body));
      // Held for as long as the lease surely lasts: what a caller may rely on without renewing.
      if (Date.now() < body.leaseDeadline) {
        seen.enter();
        await sleep(Math.min(30, body.leaseDeadline - Date.now()));
        seen.leave();
      }
      assert.equal((await insist(() => server.release(source, body))).status, 200);
      served += 1;
    }
  }

  const crowd = Promise.all(Array.from({ length: 20 }, (_, i) => caller(i)));
  for (let kills = 0; kills < 2; kills += 1) {
    await sleep(250);
    await server.kill();
    await server.start();
  }
  await crowd;
  assert.equal(served, 100);
  assert.ok(seen.most <= 4, `${seen.most} held a slot at once`);
  await sleep(1100);
  const { inUse, queueDepth } = await server.state(source);
  assert.deepEqual({ inUse, queueDepth }, { inUse: 0, queueDepth: 0 });
});
