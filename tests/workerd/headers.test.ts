// The governor's headers on its answers, and what every answer carries.

import { expect, test } from "vitest";
import {
  API,
  acquire,
  admin,
  call,
  configure,
  createSource,
  free,
  grant,
  granted,
  lock,
  release,
  renew,
  stateOf,
  waiter,
  type Answer,
} from "./support";

const GOVERNOR = ["remaining-slots", "effective-limit", "queued-ms", "queue-depth"];
const read = (answer: Answer, names = GOVERNOR) => names.map((name) => answer.headers.get(`x-swarmvia-${name}`));
const shown = (answer: Answer) =>
  [...answer.headers.keys()].filter((name) => name.startsWith("x-swarmvia-") && name !== "x-swarmvia-request-id");

test("a grant tells the free slots after it, the limit, no wait and the queue", async () => {
  const source = await createSource({ concurrency: { limit: 3 } });
  expect(read(await acquire(source))).toEqual(["2", "3", "0", "0"]);
  expect(read(await acquire(source))).toEqual(["1", "3", "0", "0"]);
  expect(read(await acquire(source))).toEqual(["0", "3", "0", "0"]);
});

test("a refusal tells them too, with the waiters behind the governor", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  await waiter(source, { waitMs: 500 });
  await waiter(source, { waitMs: 500 });
  const refused = await acquire(source);
  expect(refused.status).toBe(429);
  expect(read(refused)).toEqual(["0", "1", "0", "2"]);
});

test("a time-out tells how long it waited, and no longer counts itself", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  const timedOut = await acquire(source, { waitMs: 60 });
  expect(timedOut.status).toBe(504);
  const [remaining, limit, queuedMs, depth] = read(timedOut);
  expect([remaining, limit, depth]).toEqual(["0", "1", "0"]);
  expect(Number(queuedMs)).toBeGreaterThanOrEqual(59);
  expect(Number(queuedMs)).toBeLessThan(1100);
});

test("a grant after a wait tells how long, and who waits behind it", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const first = await waiter(source);
  const second = await waiter(source);
  await free(source, slot);
  const answer = await first.answer;
  const [remaining, , queuedMs, depth] = read(answer);
  expect([remaining, depth]).toEqual(["0", "1"]);
  expect(Number(queuedMs)).toBeGreaterThan(0);
  await free(source, granted(answer));
  expect(read(await second.answer)[3]).toBe("0");
});

test("remaining slots never fall below 0, also with more held than a lowered limit", async () => {
  const source = await createSource({ concurrency: { limit: 3 } });
  for (let i = 0; i < 3; i += 1) await grant(source);
  await configure(source, { concurrency: { limit: 1 } });
  expect(read(await acquire(source))).toEqual(["0", "1", "0", "0"]);
  expect(await stateOf(source)).toMatchObject({ inUse: 3, remainingSlots: 0, effectiveLimit: 1 });
});

test("rpm headers are there only where such a gate is in force", async () => {
  const source = await createSource();
  const rpm = ["rpm-limit", "rpm-remaining"];
  expect(read(await acquire(source), rpm)).toEqual([null, null]);
  await configure(source, { rpm: { limit: 5 } });
  expect(read(await acquire(source), rpm)).toEqual(["5", "3"]);
  await configure(source, { rpm: { limit: null } });
  expect(read(await acquire(source), rpm)).toEqual([null, null]);
});

test("who may not come in sees nothing of the governor", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  await grant(source);
  expect(shown(await acquire(source, { key: "sv_at_x" }))).toEqual([]);
  const { answer } = await waiter(source);
  await admin("DELETE", `/pools/${source.name}/keys/${source.keyId}`);
  expect((await answer).status).toBe(401);
  expect(shown(await answer)).toEqual([]);
});

test("every answer of any route has a request id of its own", async () => {
  const source = await createSource({ concurrency: { limit: 1 } });
  const slot = await grant(source);
  const path = `/pools/${source.name}`;
  // `call` holds each of them to the form of the id, to no-store and to JSON.
  const answers = [
    await acquire(source),
    await acquire(source, { waitMs: 20 }),
    await acquire(source, { key: "" }),
    await acquire(source, { body: "{" }),
    await lock(source, "acquire", { body: "x".repeat(65_537) }),
    await renew(source, slot),
    await renew(source, { slotId: "x" }),
    await release(source, slot),
    await release(source, slot),
    await admin("GET", path),
    await admin("PUT", path, {}),
    await admin("PUT", path, { x: 1 }),
    await admin("GET", "/pools"),
    await admin("GET", `${path}/slots`),
    await admin("GET", `${path}/keys`),
    await admin("POST", `${path}/keys`, {}),
    await admin("DELETE", `${path}/slots/999`),
    await admin("DELETE", `${path}/keys/0123456789abcdef`),
    await admin("DELETE", path),
    await admin("DELETE", path),
    await call("GET", `${API}/pools`),
    await call("GET", `${API}/healthz`),
    await call("GET", `${API}/openapi.json`),
    await call("GET", `${API}/nothing`),
    await call("GET", `${API}${path}/lock/acquire`),
    await call("GET", "https://elsewhere.example/pools"),
  ];
  expect(answers.map((answer) => answer.status)).toEqual([
    429, 504, 401, 400, 413, 200, 404, 200, 200, 200, 200, 400, 200, 200, 200, 201, 404, 404, 200, 404, 401, 200, 200, 404, 405, 404,
  ]);
  expect(new Set(answers.map((answer) => answer.headers.get("x-swarmvia-request-id"))).size).toBe(answers.length);
});

test("a request id from outside is not taken over", async () => {
  const source = await createSource();
  const answer = await acquire(source, { headers: { "x-swarmvia-request-id": "mine" } });
  expect(answer.headers.get("x-swarmvia-request-id")).not.toBe("mine");
});
