// A key set at a URL: what its server says of the keys holds at once, and what it fails to say is bridged for a while.

import { expect, test, vi } from "vitest";
import { stopClock } from "./support";
import { acquireWith, claims, expectIn, expectOut, guarded, makeSigner, publish, PublishedSet, seconds, token, type Answering } from "./tokens";

const EdDSA = await makeSigner("EdDSA");

const FAULTS: [string, () => Promise<Answering>][] = [
  ["is down", async () => ({ fault: "down" })],
  ["answers 500", async () => ({ status: 500, body: JSON.stringify({ keys: [EdDSA.jwk] }) })],
  ["answers 403", async () => ({ status: 403, body: JSON.stringify({ keys: [] }) })],
  ["answers 500 and an empty set", async () => ({ status: 500, body: JSON.stringify({ keys: [] }) })],
  ["answers 503 without a body", async () => ({ status: 503 })],
  ["answers 204", async () => ({ status: 204 })],
  ["redirects", async () => ({ status: 302, headers: { Location: (await publish(EdDSA)).url } })],
  ["redirects with a body", async () => ({ status: 307, headers: { Location: "/" }, body: JSON.stringify({ keys: [EdDSA.jwk] }) })],
  ["sends nothing", async () => ({ body: "" })],
  ["sends no JSON", async () => ({ body: "<html></html>" })],
  ["sends other JSON", async () => ({ body: "[]" })],
  ["sends an object without keys", async () => ({ body: "{}" })],
  ["sends null for the keys", async () => ({ body: '{"keys":null}' })],
  ["sends too many keys", async () => ({ body: JSON.stringify({ keys: Array(33).fill(EdDSA.jwk) }) })],
  ["sends too much", async () => ({ body: JSON.stringify({ keys: [EdDSA.jwk], pad: "x".repeat(256 * 1024) }) })],
  ["sends without end", async () => ({ fault: "endless" })],
];

test.each(FAULTS)("a set whose server %s lets no one in, until it is well again", async (_, answering) => {
  const clock = stopClock();
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  const wrong = await answering();
  const set = await new PublishedSet().answers(wrong);
  const source = await guarded(set);
  const right = await token(EdDSA, claims());
  await expectOut(source, right);
  await expectOut(source, right);
  // A broken connection is tried once more by workerd itself.
  expect(await set.hits()).toBeLessThanOrEqual(wrong.fault === "down" ? 2 : 1);
  expect(JSON.stringify(logged.mock.calls)).not.toContain(right.split(".")[1]);
  await set.holds([EdDSA]);
  clock.pass(2000);
  await expectIn(source, right);
  logged.mockRestore();
});

test.each(FAULTS)("the set that is known bridges ten minutes in which its server %s", async (_, answering) => {
  const clock = stopClock();
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  const set = await publish(EdDSA);
  const source = await guarded(set);
  const known = await token(EdDSA, claims({ exp: seconds(86_400) }));
  const signedLater = await token(EdDSA, claims({ sub: "later", exp: seconds(86_400) }));
  await expectIn(source, known);
  await set.answers(await answering());
  clock.pass((600 + 599) * 1000);
  await expectIn(source, signedLater);
  await expectOut(source, await token(EdDSA, claims(), { kid: "made-up" }));
  expect(await set.hits()).toBeGreaterThan(1);
  clock.pass(1000);
  await expectOut(source, known);
  await expectOut(source, signedLater);
  await set.holds([EdDSA]);
  clock.pass(2000);
  await expectIn(source, signedLater);
  logged.mockRestore();
});

const WITHDRAWN: [string, () => Answering][] = [
  ["emptied", () => ({ body: JSON.stringify({ keys: [] }) })],
  ["left with keys for something else", () => ({ body: JSON.stringify({ keys: [{ ...EdDSA.jwk, use: "enc" }] }) })],
  ["gone: 404", () => ({ status: 404, body: "not here" })],
  ["gone: 404 without a body", () => ({ status: 404 })],
  ["gone: 410", () => ({ status: 410, body: JSON.stringify({ keys: [EdDSA.jwk] }) })],
];

test.each(WITHDRAWN)("the keys of a set that is %s let no one in, until the set is back", async (_, answering) => {
  const clock = stopClock();
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  const set = await publish(EdDSA);
  const source = await guarded(set);
  const known = await token(EdDSA, claims({ exp: seconds(86_400) }));
  await expectIn(source, known);
  await set.answers(answering());
  clock.pass(600_000);
  await expectOut(source, known);
  await expectOut(source, await token(EdDSA, claims({ sub: "later" })));
  // Not even when its server is down after that.
  await set.answers({ status: 500 });
  clock.pass(2000);
  await expectOut(source, known);
  await set.holds([EdDSA]);
  clock.pass(2000);
  await expectIn(source, known);
  expect(logged.mock.calls.flat().join()).toContain("was not fetched");
  logged.mockRestore();
});

test("a set that begins with a mark of order is a set", async () => {
  const set = await new PublishedSet().answers({ body: `\ufeff${JSON.stringify({ keys: [EdDSA.jwk] })}` });
  await expectIn(await guarded(set), await token(EdDSA, claims()));
});

test("a set that is withdrawn is known to be as soon as a token names an unknown key", async () => {
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  const set = await publish(EdDSA);
  const source = await guarded(set);
  const known = await token(EdDSA, claims());
  await expectIn(source, known);
  await set.answers({ status: 404 });
  await expectOut(source, await token(EdDSA, claims(), { kid: "made-up" }));
  await expectOut(source, known);
  logged.mockRestore();
});

test("a set whose server is slow bridges no longer than one whose server is down", async () => {
  const clock = stopClock();
  const set = await publish(EdDSA);
  const source = await guarded(set);
  const known = await token(EdDSA, claims({ exp: seconds(86_400) }));
  await expectIn(source, known);
  await set.answers({ body: JSON.stringify({ keys: [EdDSA.jwk] }), delayMs: 1000 });
  clock.pass(1_199_000);
  // One fetches, the other is in by the old set meanwhile.
  const [first, second] = [acquireWith(source, known), acquireWith(source, known)];
  expect((await second).status).toBe(200);
  expect((await first).status).toBe(200);
  await set.answers({ fault: "hang" });
  clock.pass(1_200_000);
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  await expectOut(source, known);
  logged.mockRestore();
});

test("a set whose server doesn't get on is given up after five seconds", async () => {
  const logged = vi.spyOn(console, "error").mockImplementation(() => {});
  const [hangs, stalls] = [await new PublishedSet().answers({ fault: "hang" }), await new PublishedSet().answers({ fault: "stall", body: "x".repeat(100) })];
  const sources = [await guarded(hangs), await guarded(stalls)];
  const right = await token(EdDSA, claims());
  const started = Date.now();
  await Promise.all(sources.map((source) => expectOut(source, right)));
  expect(Date.now() - started).toBeGreaterThan(4500);
  expect(Date.now() - started).toBeLessThan(8000);
  logged.mockRestore();
});
