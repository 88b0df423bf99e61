// What a caller sees of a panic. The release build can't be made to panic, so builds with the feature
// `fault-injection` are used, which `npm test` makes (scripts/lib/faults.mjs); by hand:
// npm run build -- --features fault-injection --out-dir build-fault
// npm run build -- --panic-unwind --features fault-injection --out-dir build-fault-unwind

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";
import { ABORTING as ABORT, UNWINDING as UNWIND } from "../../scripts/lib/faults.mjs";
import { inRoot } from "../../scripts/lib/paths.mjs";
import { lockText, serve, sleep } from "./support.mjs";

test("the build that is deployed knows no faults", async () => {
  const wasm = readFileSync(inRoot("build", "index_bg.wasm"));
  assert.equal(wasm.includes("injected fault"), false);
  const server = await serve();
  try {
    const answer = await server.call("POST", "/fault?at=turn&times=1");
    assert.deepEqual([answer.status, answer.body.error], [404, "not_found"]);
  } finally {
    await server.end();
  }
});

/** A test on a build with faults, if there is one. */
function on(outDir, name, body) {
  const skip = existsSync(inRoot(outDir, "index_bg.wasm")) ? false : `there is no ${outDir}/`;
  test(`${outDir}: ${name}`, { skip, timeout: 90_000 }, async () => {
    const server = await serve(undefined, outDir);
    const fault = async (at, times = 1) => {
      const answer = await server.call("POST", `/fault?at=${at}&times=${times}`);
      assert.equal(answer.status, 200);
      return answer;
    };
    try {
      await body(server, fault);
    } finally {
      await server.end();
    }
  });
}

on(UNWIND, "a panic in the Worker is 503, and the next call is well", async (server, fault) => {
  const source = await server.createSource("one");
  await fault("worker");
  const answer = await server.acquire(source);
  assert.deepEqual([answer.status, answer.body.error], [503, "unavailable"]);
  assert.ok(answer.headers["x-swarmvia-request-id"]);
  assert.ok(Number(answer.headers["retry-after"]) >= 1);
  await server.grant(source);
  assert.equal((await server.state(source)).inUse, 1);
});

for (const at of ["turn", "written", "transaction"]) {
  on(UNWIND, `a panic in an object's turn (${at}) isn't noticed: the Worker calls again, and one attempt has one slot`, async (server, fault) => {
    const source = await server.createSource("one", { concurrency: { limit: 3 } });
    const slot = await server.grant(source);
    await fault(at, 2);
    await server.grant(source);
    assert.equal((await server.state(source)).inUse, 2);
    await fault(at);
    assert.deepEqual((await server.release(source, slot)).status, 200);
    assert.equal((await server.state(source)).inUse, 1);
  });
}

on(UNWIND, "a turn that panics each time is 503, soon, and leaves nothing held", async (server, fault) => {
  const source = await server.createSource("one");
  await fault("turn", 100);
  const startedAt = performance.now();
  assert.equal((await server.acquire(source)).status, 503);
  assert.ok(performance.now() - startedAt < 8000);
  await fault("turn", 0);
  assert.equal((await server.state(source)).inUse, 0);
});

for (const build of [UNWIND, ABORT]) {
  on(build, "those who wait while a turn panics are carried over in order, and served", carriedOver);
}

async function carriedOver(server, fault) {
  const source = await server.createSource("one", { concurrency: { limit: 1 } });
  const slot = await server.grant(source);
  const order = [];
  const waiting = [];
  for (let i = 0; i < 3; i += 1) {
    waiting.push(
      server.acquire(source, { waitMs: 20_000 }).then(async ({ status, body }) => {
        assert.equal(status, 200);
        order.push(i);
        await server.release(source, body);
      }),
    );
    await server.untilDepth(source, i + 1);
    await sleep(50);
  }
  await fault("turn");
  // Not a release: its repeat may come before theirs, and then the slot is free for whichever of them is back first.
  assert.equal((await server.renew(source, slot)).status, 200);
  await server.untilDepth(source, 3);
  await server.release(source, slot);
  await Promise.all(waiting);
  assert.deepEqual(order, [0, 1, 2]);
  assert.equal((await server.state(source)).inUse, 0);
}

on(UNWIND, "a panic as a waiter is answered: it gets the slot that it was granted", (server, fault) => panicsAtAnswer(server, fault, 20_000));

async function panicsAtAnswer(server, fault, waitMs) {
  const source = await server.createSource("one", { concurrency: { limit: 1 } });
  const slot = await server.grant(source);
  const waiting = server.acquire(source, { waitMs });
  await server.untilDepth(source, 1);
  await fault("wait");
  await server.release(source, slot);
  assert.equal((await waiting).status, 200);
  assert.equal((await server.state(source)).inUse, 1);
}

on(UNWIND, "an alarm that panics loses no slot", async (server, fault) => {
  const source = await server.createSource("one", { lease: { termMs: 500 } });
  await fault("alarm", 2);
  await server.grant(source);
  await sleep(500);
  const next = await server.acquire(source, { waitMs: 5000 });
  assert.equal(next.status, 200);
  await sleep(4000);
  assert.equal((await server.state(source)).inUse, 0);
});

on(UNWIND, "a control call that panics is tried again where it may be repeated, else it is 503", async (server, fault) => {
  const source = await server.createSource("one");
  await fault("control");
  assert.equal((await server.admin("GET", "/pools/one")).status, 200);
  await fault("control");
  assert.equal((await server.admin("POST", "/pools/one/keys", {})).status, 503);
  await server.grant(source);
});

for (const at of ["worker", "settle"]) {
  on(ABORT, `a panic in the Worker (${at}) is 503, and the next call is well`, async (server, fault) => {
    const source = await server.createSource("one");
    await fault(at);
    // What settles a call whose key is dead.
    const dead = await server.createSource("two");
    await server.admin("DELETE", `/pools/two/keys/${dead.keyId}`);
    const answer = await server.acquire(at === "settle" ? dead : source);
    assert.deepEqual([answer.status, answer.body.error], [503, "unavailable"]);
    assert.match(answer.headers["x-swarmvia-request-id"], /^[0-9a-f]{32}$/);
    assert.ok(Number(answer.headers["retry-after"]) >= 1);
    await server.grant(source);
  });
}

on(ABORT, "a panic elsewhere strands nobody: who waits at another source is answered by its deadline, and when its gate opens", async (server, fault) => {
  const busy = await server.createSource("busy", { concurrency: { limit: 1 } });
  await server.grant(busy);
  const closed = await server.createSource("closed");
  await server.release(closed, await server.grant(closed), { status: 429, headers: { "retry-after": "2" } });
  const other = await server.createSource("other");
  const began = performance.now();
  const timed = async (waiting) => ({ status: (await waiting).status, ms: performance.now() - began });
  const waiting = [timed(server.acquire(busy, { waitMs: 3000 })), timed(server.acquire(closed, { waitMs: 20_000 }))];
  await server.untilDepth(busy, 1);
  await server.untilDepth(closed, 1);
  await fault("worker");
  assert.equal((await server.acquire(other)).status, 503);
  await server.grant(other);
  const [late, opened] = await Promise.all(waiting);
  assert.deepEqual([late.status, opened.status], [504, 200]);
  assert.ok(late.ms >= 3000 && late.ms < 5000, `${late.ms} ms`);
  assert.ok(opened.ms < 5000, `${opened.ms} ms`);
});

on(ABORT, "a panic as a waiter is answered: it is carried over, and has the slot that it was granted", (server, fault) => panicsAtAnswer(server, fault, 5000));

on(ABORT, "a control call that panics is 503, soon, and the next call is well", async (server, fault) => {
  await server.createSource("one");
  await fault("control");
  const began = performance.now();
  assert.equal((await server.admin("GET", "/pools/one")).status, 503);
  assert.ok(performance.now() - began < 5000);
  assert.equal((await server.admin("GET", "/pools/one")).status, 200);
});

on(ABORT, "who leaves while a key set is fetched takes no memory along", async (server, fault) => {
  const hangs = createServer(() => {}).listen(0, "127.0.0.1");
  await once(hangs, "listening");
  const jwksUrl = `http://127.0.0.1:${hangs.address().port}/keys`;
  const source = await server.createSource("one", { access: { jwt: { issuer: "i", audience: "a", jwksUrl } } });
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = `${part({ alg: "ES256", kid: "k" })}.${part({ iss: "i", aud: "a", exp: 9_999_999_999 })}.${"A".repeat(86)}`;
  const comeAndGo = async () => {
    const { socket, answer } = server.raw(lockText(source, "", [`X-Swarmvia-Jwt: ${token}`]));
    socket.once("connect", () => setTimeout(() => socket.resetAndDestroy(), 20));
    await answer;
  };
  const memory = [];
  for (let round = 0; round < 4; round += 1) {
    for (let i = 0; i < 20; i += 1) await Promise.all(Array.from({ length: 40 }, comeAndGo));
    await sleep(6000); // A fetch is given up after 5 s.
    memory.push((await fault("turn", 0)).body.memory);
  }
  hangs.close();
  // The first rounds make room; then what they had is used again. A caller that is not freed takes 5 KB.
  assert.ok(memory.at(-1) - memory.at(1) < 1_000_000, memory.join(" "));
});

on(ABORT, "a panic in an object's turn isn't noticed by its caller: the wasm is made anew, and the Worker calls again", async (server, fault) => {
  const source = await server.createSource("one", { concurrency: { limit: 2 } });
  const slot = await server.grant(source);
  await fault("turn");
  await server.grant(source);
  assert.equal((await server.renew(source, slot)).status, 200);
  assert.equal((await server.state(source)).inUse, 2);
  assert.equal((await server.acquire(source)).status, 429);
});


on(ABORT, "an alarm that panics, too: leases end by the clock, whoever looks", async (server, fault) => {
  const source = await server.createSource("one", { concurrency: { limit: 1 }, lease: { termMs: 500 } });
  await server.grant(source);
  await fault("alarm");
  await sleep(700);
  await server.grant(source);
});
