// What happened is counted: in the state of a source, and for Prometheus.

import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { API, acquire, admin, createSource, expectError, free, grant, objectOf, sleep, stateOf, stopClock, type Source } from "./support";

const scrape = async () => {
  const response = await exports.default.fetch(`${API}/metrics`, { headers: { Authorization: `Bearer ${env.ADMIN_TOKEN}` } });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

/** A figure of a source; `labels` are those after its name. */
const figure = async (source: Source, name: string, labels = "") => {
  const start = `swarmvia_locks_${name}{source="${source.name}"${labels}} `;
  const line = (await scrape()).text.split("\n").find((line) => line.startsWith(start));
  return line === undefined ? undefined : Number(line.slice(start.length));
};
const acquires = (source: Source, outcome: string) => figure(source, "acquires_total", `,outcome="${outcome}"`);

/** Until `GET /metrics` shows so many grants. */
const untilCounted = (source: Source, granted: number) =>
  vi.waitFor(async () => expect(await acquires(source, "granted")).toBe(granted), { timeout: 5000, interval: 50 });

test("the state counts attempts by outcome, releases, expired leases and throttled reports", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 2 } });
  await free(source, await grant(source), { status: 429 });
  await grant(source);
  await grant(source);
  expectError(await acquire(source), 429, "too_many_requests", { reason: "no_free_slot" });
  expectError(await acquire(source, { body: "[]" }), 400, "invalid_request");
  clock.pass(30_000);
  const { counters } = await stateOf(source);
  expect(counters).toMatchObject({ released: 1, expired: 2, throttled: 1 });
  expect(counters.acquires).toMatchObject({ granted: 3, no_free_slot: 1, invalid_request: 1, rpm: 0, omitted: 0 });
});

test("GET /metrics shows them, in the text form of Prometheus", async () => {
  const source = await createSource();
  await grant(source);
  await free(source, await grant(source));
  await untilCounted(source, 2);
  const { status, headers, text } = await scrape();
  expect(status).toBe(200);
  expect(headers.get("Content-Type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(text).toContain(`swarmvia_locks_slots_limit{source="${source.name}"} 10\n`);
  await admin("DELETE", `/pools/${source.name}`);
  expect((await scrape()).text).not.toContain(source.name);
});

test("a burst is told to its end without a further call, and counted on by the next object", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  for (let i = 0; i < 5; i += 1) await acquire(source);
  await free(source, slot, { status: 429 });
  await untilCounted(source, 1);
  expect(await acquires(source, "no_free_slot")).toBe(5);
  expect(await figure(source, "slots_in_use")).toBe(0);
  expect(await figure(source, "throttled_reports_total")).toBe(1);

  await evictDurableObject(objectOf(source));
  expect((await stateOf(source)).counters).toMatchObject({ released: 1, throttled: 1 });
  clock.pass(16_000);
  await free(source, await grant(source));
  await untilCounted(source, 2);
  expect((await stateOf(source)).counters.acquires).toMatchObject({ granted: 2, no_free_slot: 5 });
});

test("a lease that ends while its object sleeps is counted, once", async () => {
  const clock = stopClock();
  const source = await createSource();
  await grant(source);
  await grant(source);
  await untilCounted(source, 2);
  await evictDurableObject(objectOf(source));
  clock.pass(30_000);
  for (let loads = 0; loads < 2; loads += 1) {
    expect((await stateOf(source)).counters).toMatchObject({ expired: 2, released: 0 });
    await vi.waitFor(async () => expect(await figure(source, "expired_leases_total")).toBe(2), { timeout: 5000, interval: 50 });
    await evictDurableObject(objectOf(source));
    clock.pass(16_000);
  }
});

test("what is told costs one row, and nothing when there are no news", async () => {
  const source = await createSource();
  await grant(source);
  await untilCounted(source, 1);
  const written = () =>
    runInDurableObject(objectOf(source), (_, state) => [...state.storage.sql.exec("SELECT at, tally FROM told")]);
  const [first, ...more] = await written();
  expect(more).toEqual([]);
  await stateOf(source);
  await sleep(2500);
  expect(await written()).toEqual([first]);
});

test("an object that was cut off before it told counts on from what it told last", async () => {
  const source = await createSource();
  await grant(source);
  await untilCounted(source, 1);
  await grant(source);
  await abortAllDurableObjects();
  expect((await stateOf(source)).counters.acquires.granted).toBe(1);
  expect(await acquires(source, "granted")).toBe(1);
});

test("GET /metrics asks for the admin token", async () => {
  expectError(await admin("GET", "/metrics", undefined, { Authorization: "Bearer wrong" }), 401, "unauthorized");
});
