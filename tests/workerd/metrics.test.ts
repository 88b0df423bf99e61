// What happened is counted: in the state of a source, and for Prometheus.

import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { API, acquire, admin, call, createSource, expectError, free, grant, objectOf, sleep, stateOf, stopClock, waiter, type Source } from "./support";

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

test("an object that was cut off before it told counts what its log has since, once however often it is cut off", async () => {
  const clock = stopClock();
  const source = await createSource({ concurrency: { limit: 2 } });
  await grant(source);
  await untilCounted(source, 1);
  clock.pass(16_000);
  await grant(source);
  const { answer } = await waiter(source, { waitMs: 20_000 });
  clock.pass(14_000);
  // The first lease has ended: its slot goes to the one who waited.
  expect((await acquire(source)).status).toBe(429);
  expect((await answer).status).toBe(200);
  for (let cut = 0; cut < 3; cut += 1) {
    await abortAllDurableObjects();
    expect((await stateOf(source)).counters.acquires).toMatchObject({ granted: 3, no_free_slot: 1, rpm: 0 });
  }
  await untilCounted(source, 3);
  expect(await figure(source, "queue_wait_seconds_count")).toBe(3);
  expect(await figure(source, "queue_wait_seconds_sum")).toBe(14);
  await abortAllDurableObjects();
  expect((await stateOf(source)).counters.acquires).toMatchObject({ granted: 3, no_free_slot: 1 });
});

test("an object that was cut off before it ever told has its counts from the log", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  for (let i = 0; i < 3; i += 1) await acquire(source);
  await abortAllDurableObjects();
  expect((await stateOf(source)).counters.acquires).toMatchObject({ granted: 1, no_free_slot: 3 });
});

const setTold = (source: Source, text: string) =>
  runInDurableObject(objectOf(source), (_, state) => void state.storage.sql.exec("UPDATE told SET tally = ?", text));
const toldText = (source: Source) =>
  runInDurableObject(objectOf(source), (_, state) => state.storage.sql.exec("SELECT tally FROM told").one().tally as string);

test("counts that an earlier version stored by position go on, and a newer version's are kept", async () => {
  const clock = stopClock();
  const source = await createSource();
  await grant(source);
  await untilCounted(source, 1);
  const positional = "12,3,0,0,5,0,0,0,0,0,7,11,2,1,10,2,0,0,0,0,0,0,0,0,0,0,64,11,0,0,0,0,0,0,0,0,0,0,0,42";
  await setTold(source, positional);
  await abortAllDurableObjects();
  clock.pass(16_000);
  expect((await stateOf(source)).counters).toMatchObject({ acquires: { granted: 12, omitted: 7 }, released: 11, throttled: 1 });
  await grant(source);
  await untilCounted(source, 13);
  expect(await figure(source, "hold_seconds_count")).toBe(11);

  // A newer version has been here, with an outcome of its own.
  await setTold(source, `${await toldText(source)},token_budget:4`);
  await abortAllDurableObjects();
  clock.pass(16_000);
  await grant(source);
  await untilCounted(source, 14);
  expect((await toldText(source)).split(",")).toContain("token_budget:4");
  // An earlier version that comes back reads what stands in front.
  expect((await toldText(source)).split(",").slice(0, 12)).toEqual(["14", "3", "0", "0", "5", "0", "0", "0", "0", "0", "7", "11"]);
});

test("a push that can't be read takes no count back, and a source made anew begins at 0", async () => {
  const source = await createSource();
  await grant(source);
  await untilCounted(source, 1);
  const directory = env.DIRECTORY.getByName("directory");
  const push = (tally: string) => directory.fetch(`http://directory/v1/push?source=${source.name}&at=1&limit=2&inUse=3&depth=4${tally}`);
  for (const tally of ["", "&tally=", "&tally=1,2"]) {
    expect((await push(tally)).status).toBe(204);
    expect(await acquires(source, "granted")).toBe(1);
  }
  expect(await figure(source, "slots_in_use")).toBe(3);
  // Its end did not reach the directory: what it counted is no count of the next one.
  await directory.fetch(`http://directory/v1/register?source=${source.name}&createdAt=1&updatedAt=2`);
  expect((await push("")).status).toBe(204);
  expect(await acquires(source, "granted")).toBe(0);
});

/** A figure of the whole deployment. */
const total = async (name: string) => Number((await scrape()).text.match(new RegExp(`^swarmvia_${name}_total (\\d+)$`, "m"))?.[1]);

test("wrong admin tokens are counted, none at all isn't one", async () => {
  const before = await total("admin_refused");
  for (let i = 0; i < 3; i += 1) await admin("GET", "/pools", undefined, { Authorization: "Bearer wrong" });
  await call("GET", `${API}/pools`);
  await vi.waitFor(async () => expect(await total("admin_refused")).toBe(before + 3), { timeout: 8000, interval: 100 });
});

test("refused refreshes are counted: of the source where it wrote the token, of the deployment where nobody did", async () => {
  const source = await createSource();
  const before = await total("refresh_refused");
  const { body } = await admin("POST", `/pools/${source.name}/keys`, {});
  await admin("DELETE", `/pools/${source.name}/keys/${body.keyId}`);
  const refresh = (refreshToken: string) =>
    call("POST", `${API}/pools/${source.name}/keys/refresh`, { body: JSON.stringify({ refreshToken }) });
  for (const token of [body.refreshToken, body.refreshToken, "sv_rt_made-up"]) expectError(await refresh(token), 401, "unauthorized");
  await vi.waitFor(
    async () => {
      expect(await figure(source, "refresh_refused_total")).toBe(2);
      expect(await total("refresh_refused")).toBe(before + 1);
    },
    { timeout: 8000, interval: 100 },
  );
  expect((await stateOf(source)).counters.refreshRefused).toBe(2);
  // Nobody tried to acquire.
  expect((await admin("GET", `/pools/${source.name}/log`)).body.entries).toEqual([]);
});

test("the answer of GET /metrics has an id of its own", async () => {
  const ids = [await scrape(), await scrape()].map(({ headers }) => headers.get("x-swarmvia-request-id"));
  expect(ids[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(new Set([...ids, "0".repeat(32)]).size).toBe(3);
});

test("GET /metrics asks for the admin token", async () => {
  expectError(await admin("GET", "/metrics", undefined, { Authorization: "Bearer wrong" }), 401, "unauthorized");
});
