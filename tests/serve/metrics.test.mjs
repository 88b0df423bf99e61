// What Prometheus sees of a source that is called now and then: all of it, also where the object is idle or ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIN_TOKEN, serve, sleep } from "./support.mjs";

async function figures(server, source) {
  const answer = await fetch(`http://127.0.0.1:${server.port}/metrics`, { headers: { Authorization: `Bearer ${ADMIN_TOKEN}` } });
  const text = await answer.text();
  const of = (name) => Number(text.match(new RegExp(`^swarmvia_locks_${name} (.*)$`, "m"))?.[1] ?? 0);
  return {
    granted: of(`acquires_total{source="${source.name}",outcome="granted"}`),
    released: of(`releases_total{source="${source.name}"}`),
    inUse: of(`slots_in_use{source="${source.name}"}`),
  };
}

/** Until the figures that are `expected` are seen; others may be what they are. */
async function until(server, source, expected) {
  const started = Date.now();
  for (;;) {
    const all = await figures(server, source);
    const seen = Object.fromEntries(Object.keys(expected).map((name) => [name, all[name]]));
    try {
      assert.deepEqual(seen, expected);
      return Date.now() - started;
    } catch (error) {
      if (Date.now() - started > 20_000) throw error;
      await sleep(250);
    }
  }
}

test("the last word on a burst is told though nobody calls again, and outlives kill -9", async () => {
  const server = await serve();
  try {
    const source = await server.createSource("burst");
    const slot = await server.grant(source);
    await until(server, source, { granted: 1, released: 0, inUse: 1 });
    // From here on it is too early for another word, and the object would be let go before it is due.
    await server.release(source, slot);
    const took = await until(server, source, { granted: 1, released: 1, inUse: 0 });
    assert.ok(took > 10_000, `${took} ms: an idle object is let go after ten seconds`);
    await server.kill();
    await server.start();
    assert.deepEqual(await figures(server, source), { granted: 1, released: 1, inUse: 0 });
    await server.grant(source);
    const { counters } = await server.state(source);
    assert.deepEqual([counters.acquires.granted, counters.released], [2, 1]);
  } finally {
    await server.end();
  }
});

test("under kill -9 again and again, the grants that were answered are the grants that are counted", async () => {
  const server = await serve();
  try {
    const source = await server.createSource("killed", { concurrency: { limit: 8 }, lease: { termMs: 1000 }, log: { keep: 100 } });
    let answered = 0;
    let asked = 0;
    let ends = false;
    const caller = async () => {
      while (!ends) {
        asked += 1;
        try {
          const { status, body } = await server.acquire(source, { waitMs: 5000 });
          if (status !== 200) continue;
          answered += 1;
          await server.release(source, body);
        } catch {
          // The server is down.
          await sleep(20);
        }
      }
    };
    const callers = Array.from({ length: 4 }, caller);
    for (let kills = 0; kills < 5; kills += 1) {
      await sleep(1500);
      await server.kill();
      await server.start();
    }
    ends = true;
    await Promise.all(callers);
    // A call that was cut off may have been granted without an answer.
    const { counters } = await server.state(source);
    assert.ok(counters.acquires.granted >= answered && counters.acquires.granted <= asked, `${answered} ${asked} ${counters.acquires.granted}`);
    await server.kill();
    await server.start();
    await server.state(source);
    await until(server, source, { granted: counters.acquires.granted });
  } finally {
    await server.end();
  }
});
