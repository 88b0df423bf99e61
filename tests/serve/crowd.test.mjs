// 200 callers through real sockets.

import assert from "node:assert/strict";
import { Agent } from "node:http";
import { after, before, test } from "node:test";
import { serve, sleep, tally } from "./support.mjs";

const CALLERS = 200;
const LIMIT = 7;

let server;

before(async () => {
  server = await serve();
});
after(() => server.end());

test("200 callers 5 ms apart against a limit of 7 never overlap above it, all are served, in order of arrival", async () => {
  const source = await server.createSource("crowd", { concurrency: { limit: LIMIT }, queue: { maxDepth: CALLERS } });
  const seen = tally();
  // A connection for each caller, open before it calls: so they arrive in the order in which they call.
  const lines = Array.from({ length: CALLERS }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  await Promise.all(lines.map((agent) => server.call("GET", "/healthz", { agent })));

  const startedAt = performance.now();
  const callers = await Promise.all(
    lines.map(async (agent, i) => {
      await sleep(i * 5);
      const calledAt = performance.now() - startedAt;
      const { status, body } = await server.acquire(source, { waitMs: 30_000 }, {}, agent);
      assert.equal(status, 200, JSON.stringify(body));
      seen.enter();
      await sleep(50);
      seen.leave();
      assert.deepEqual((await server.release(source, body, { status: 200 })).body, { released: true });
      agent.destroy();
      return { i, calledAt, grantedAt: body.leaseDeadline - body.termMs, slotId: body.slotId };
    }),
  );

  assert.ok(seen.most <= LIMIT, `${seen.most} held a slot at once`);
  assert.equal(new Set(callers.map((caller) => caller.slotId)).size, CALLERS);
  assert.deepEqual(overtaken(callers), []);
  const { inUse, queueDepth } = await server.state(source);
  assert.deepEqual({ inUse, queueDepth }, { inUse: 0, queueDepth: 0 });
});

/** Who was granted a slot after someone who called surely later; on a stalled machine two may call in one moment. */
const overtaken = (callers) =>
  callers.filter((one) => callers.some((other) => other.calledAt - one.calledAt >= 3 && other.grantedAt < one.grantedAt));

test("a burst of 200 at one moment is served whole, and no slot idles between callers", async () => {
  const source = await server.createSource("burst", { concurrency: { limit: LIMIT }, queue: { maxDepth: CALLERS } });
  const seen = tally();
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      const slot = await server.grant(source, { waitMs: 30_000 });
      seen.enter();
      await sleep(20);
      seen.leave();
      assert.deepEqual((await server.release(source, slot)).body, { released: true });
    }),
  );
  assert.ok(seen.most <= LIMIT, `${seen.most} held a slot at once`);
  // 29 rounds of 20 ms, and what the calls themselves take.
  assert.ok(performance.now() - startedAt < 8000);
  assert.equal((await server.state(source)).inUse, 0);
});
