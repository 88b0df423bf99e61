// What happened is counted: in the state of a source, and for Prometheus.

import { env, exports } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { API, acquire, admin, createSource, expectError, free, grant, stateOf, stopClock } from "./support";

const scrape = async () => {
  const response = await exports.default.fetch(`${API}/metrics`, { headers: { Authorization: `Bearer ${env.ADMIN_TOKEN}` } });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

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
  const clock = stopClock();
  const source = await createSource();
  await grant(source);
  clock.pass(16_000);
  await free(source, await grant(source));
  const text = await vi.waitFor(async () => {
    const answer = await scrape();
    expect(answer.status).toBe(200);
    expect(answer.headers.get("Content-Type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(answer.text).toContain(`swarmvia_locks_acquires_total{source="${source.name}",outcome="granted"} 2\n`);
    return answer.text;
  });
  expect(text).toContain(`swarmvia_locks_slots_limit{source="${source.name}"} 10\n`);
  await admin("DELETE", `/pools/${source.name}`);
  expect((await scrape()).text).not.toContain(source.name);
});

test("GET /metrics asks for the admin token", async () => {
  expectError(await admin("GET", "/metrics", undefined, { Authorization: "Bearer wrong" }), 401, "unauthorized");
});
