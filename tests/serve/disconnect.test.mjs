// Callers who hang up while they wait. (Locally only a reset connection is noticed; a closed one is not.)

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { lockText, serve, sleep } from "./support.mjs";

let server;

before(async () => {
  server = await serve();
});
after(() => server.end());

/** A caller who waits, and whose connection the test holds. */
async function waiter(source, headers) {
  const { queueDepth } = await server.state(source);
  const { socket } = server.raw(lockText(source, '{"waitMs":20000}', headers));
  await server.untilDepth(source, queueDepth + 1);
  return socket;
}

test("a waiter whose connection was reset leaves the queue, and the next one gets the slot at once", async () => {
  const source = await server.createSource("next", { concurrency: { limit: 1 } });
  const slot = await server.grant(source);
  const gone = await waiter(source);
  const next = server.acquire(source, { waitMs: 20_000 });
  await server.untilDepth(source, 2);
  gone.resetAndDestroy();
  await server.untilDepth(source, 1);
  const releasedAt = Date.now();
  await server.release(source, slot);
  const answer = await next;
  assert.equal(answer.status, 200);
  assert.ok(Date.now() - releasedAt < 500);
  const { inUse, queueDepth } = await server.state(source);
  assert.deepEqual({ inUse, queueDepth }, { inUse: 1, queueDepth: 0 });
});

test("of many waiters who left none holds anything, wherever they stood in the queue", async () => {
  const source = await server.createSource("many", { concurrency: { limit: 2 } });
  const slots = [await server.grant(source), await server.grant(source)];
  const sockets = [];
  for (let i = 0; i < 10; i += 1) sockets.push(await waiter(source));
  const staying = server.acquire(source, { waitMs: 20_000 });
  await server.untilDepth(source, 11);
  for (let i = 0; i < 5; i += 1) sockets.push(await waiter(source));
  for (const socket of sockets) socket.resetAndDestroy();
  await server.untilDepth(source, 1);
  await server.release(source, slots[0]);
  assert.equal((await staying).status, 200);
  await server.release(source, slots[1]);
  const { inUse, remainingSlots, queueDepth } = await server.state(source);
  assert.deepEqual({ inUse, remainingSlots, queueDepth }, { inUse: 1, remainingSlots: 1, queueDepth: 0 });
});

test("a place makes room in a full queue when its caller has left", async () => {
  const source = await server.createSource("room", { concurrency: { limit: 1 }, queue: { maxDepth: 1 } });
  await server.grant(source);
  const gone = await waiter(source);
  assert.equal((await server.acquire(source, { waitMs: 1000 })).body.reason, "queue_full");
  gone.resetAndDestroy();
  await server.untilDepth(source, 0);
  assert.equal((await server.acquire(source, { waitMs: 100 })).status, 504);
});

test("who shares a place keeps it when the other has left", async () => {
  const source = await server.createSource("shared", { concurrency: { limit: 1 } });
  const slot = await server.grant(source);
  const gone = await waiter(source, ["Idempotency-Key: job-1"]);
  const joined = server.acquire(source, { waitMs: 20_000 }, { "Idempotency-Key": "job-1" });
  await sleep(100);
  gone.resetAndDestroy();
  await sleep(200);
  assert.equal((await server.state(source)).queueDepth, 1);
  await server.release(source, slot);
  assert.equal((await joined).status, 200);
});

test("whoever leaves in the moment of the grant holds a slot for one term at most", async () => {
  const source = await server.createSource("moment", { concurrency: { limit: 1 }, lease: { termMs: 500 } });
  for (let i = 0; i < 4; i += 1) {
    const slot = await server.grant(source, { waitMs: 2000 });
    const gone = await waiter(source);
    const released = server.release(source, slot);
    gone.resetAndDestroy();
    await released;
  }
  const slot = await server.grant(source, { waitMs: 2000 });
  assert.ok(slot.slotId);
});

test("a holder's connection is not its lease: the slot stays until it is released or its lease ends", async () => {
  const source = await server.createSource("holder", { concurrency: { limit: 1 } });
  const { socket, answer } = server.raw(lockText(source, "", ["Connection: close"]));
  const [, slotId] = (await answer).match(/"slotId":"([^"]+)"/);
  socket.resetAndDestroy();
  await sleep(100);
  assert.equal((await server.acquire(source)).status, 429);
  assert.deepEqual((await server.release(source, { slotId })).body, { released: true });
});
