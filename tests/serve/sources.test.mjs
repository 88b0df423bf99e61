// Many sources: each made and used once. Memory and files stay in proportion, and the list stays paged and quick.
// SOURCES=10000 makes so many; figures are for docs/reliability.md.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { at, many, memory, objects, pages, size, stored } from "./figures.mjs";
import { ADMIN_TOKEN, serve, sleep } from "./support.mjs";

const COUNT = size("SOURCES", 200);
const HANDS = 8;

let server;

before(async () => {
  server = await serve();
});
after(() => server.end());

test(`${COUNT} sources are made and used: each has its file, all are listed, page by page`, { timeout: 60_000 + 100 * COUNT }, async () => {
  const before = { memory: memory(server), files: objects(server).length };
  const startedAt = performance.now();
  const took = [];
  let most = before.memory;
  await many(COUNT, HANDS, async (i) => {
    const source = await server.createSource(`s-${String(i).padStart(6, "0")}`, { concurrency: { limit: 2 } });
    const calledAt = performance.now();
    await server.release(source, await server.grant(source));
    took.push(performance.now() - calledAt);
    if (i % 50 === 0) most = Math.max(most, memory(server));
  });
  const tookMs = performance.now() - startedAt;
  took.sort((a, b) => a - b);

  // The directory's own file is there from the first on, and the first of each class makes one more.
  const files = objects(server).length - before.files;
  assert.ok(files >= COUNT && files <= COUNT + 3, `${files} files`);
  const { all, slowestMs } = await pages(server, "/pools", "pools", "after");
  const names = all.map(({ source }) => source);
  assert.equal(new Set(names).size, COUNT);
  assert.deepEqual(names, [...names].sort());
  assert.equal((await server.admin("GET", "/pools")).body.pools.length, Math.min(100, COUNT));
  const metricsAt = performance.now();
  const metrics = await fetch(`http://127.0.0.1:${server.port}/metrics`, { headers: { Authorization: `Bearer ${ADMIN_TOKEN}` } });
  const figures = await metrics.text();
  assert.equal(metrics.status, 200);
  const metricsMs = Math.round(performance.now() - metricsAt);
  assert.ok(slowestMs < 5000, `a page took ${slowestMs} ms`);

  // One that is new, and one that has slept, beside all the others.
  const late = await server.createSource("late");
  await server.release(late, await server.grant(late));
  await sleep(12_000); // Objects leave memory 10 s after their last call.
  console.log(
    `sources: ${COUNT} made and used in ${Math.round(tookMs / 1000)} s (acquire and release: p50 ${at(took, 0.5)} ms, p99 ${at(took, 0.99)}); ` +
      `workerd ${before.memory} MiB before, ${most} at most, ${memory(server)} when they sleep; ` +
      `${files} files, ${Math.round(stored(server) / COUNT)} KiB a source; slowest page of 1,000: ${slowestMs} ms; ` +
      `/metrics: ${metricsMs} ms, ${Math.round(figures.length / 1024)} KiB`,
  );
  await server.grant(late);
});
