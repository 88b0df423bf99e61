// GET /audit: who made and who deleted which source, and tokens that were refused. It outlives the sources.

import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect, test, vi } from "vitest";
import { admin, API, call, configure, createSource, expectError } from "./support";

const FROM = { "CF-Connecting-IP": "203.0.113.9" };
const audit = async (query = "") => (await admin("GET", `/audit${query}`)).body;
const entriesOf = async (source: string) => (await audit("?limit=1000")).entries.filter((entry: any) => entry.source === source);
const directory = () => env.DIRECTORY.getByName("directory");

test("a source that was deleted is still there, with who made it and who ended it", async () => {
  const name = "once-here";
  const made = await admin("PUT", `/pools/${name}`, {}, FROM);
  expect(made.status).toBe(201);
  expect((await configure({ name }, { concurrency: { limit: 3 } })).status).toBe(200);
  const ended = await admin("DELETE", `/pools/${name}`, undefined, { "CF-Connecting-IP": "2001:db8::7" });
  expect(ended.status).toBe(200);
  // What isn't there any more can't be ended again.
  await admin("DELETE", `/pools/${name}`);
  const at = expect.any(Number);
  expect(await entriesOf(name)).toEqual([
    { at, action: "deleted", source: name, ip: "2001:db8::7", requestId: ended.headers.get("x-swarmvia-request-id") },
    { at, action: "created", source: name, ip: "203.0.113.9", requestId: made.headers.get("x-swarmvia-request-id") },
  ]);
});

test("it is read page by page, by the admin token only, and its answer has the id of its request", async () => {
  for (let i = 0; i < 3; i += 1) await createSource();
  const first = await admin("GET", "/audit?limit=2");
  expect(first.status).toBe(200);
  expect(first.headers.get("x-swarmvia-request-id")).not.toBe("0".repeat(32));
  expect(first.body.entries.length).toBe(2);
  const second = await audit(`?limit=1&before=${first.body.next}`);
  const [one, two, three] = (await audit("?limit=3")).entries;
  expect([...first.body.entries, ...second.entries]).toEqual([one, two, three]);
  expectError(await admin("GET", "/audit?after=1"), 400, "invalid_request", { field: "query" });
  expectError(await admin("GET", "/audit?limit=0"), 400, "invalid_request", { field: "limit" });
  expectError(await call("GET", `${API}/audit`), 401, "unauthorized");
  expectError(await admin("POST", "/audit", {}), 405, "method_not_allowed");
});

test("a Worker of the version before says nothing of who it was, and its calls are kept all the same", async () => {
  const tell = (path: string) => directory().fetch(`http://directory/v1/${path}`);
  expect((await tell("register?source=of-before&createdAt=1&updatedAt=2")).status).toBe(204);
  expect((await tell("register?source=of-before&createdAt=1&updatedAt=3")).status).toBe(204);
  expect((await tell("remove?source=of-before")).status).toBe(204);
  const at = expect.any(Number);
  expect(await entriesOf("of-before")).toEqual([
    { at, action: "deleted", source: "of-before" },
    { at, action: "created", source: "of-before" },
  ]);
});

test("wrong admin tokens and made-up refresh tokens are an entry a minute, with their count and the last address", async () => {
  const headers = { Authorization: "Bearer wrong", ...FROM };
  for (let i = 0; i < 3; i += 1) expectError(await admin("DELETE", "/pools/guessed", undefined, headers), 401, "unauthorized");
  const body = JSON.stringify({ refreshToken: "sv_rt_made-up" });
  await call("POST", `${API}/pools/guessed/keys/refresh`, { headers: FROM, body });
  const shared = { at: expect.any(Number), source: "guessed", ip: "203.0.113.9" };
  await vi.waitFor(
    async () =>
      expect(await entriesOf("guessed")).toEqual(
        expect.arrayContaining([
          { ...shared, action: "admin_refused", count: expect.any(Number) },
          { ...shared, action: "refresh_refused", count: expect.any(Number) },
        ]),
      ),
    { timeout: 8000, interval: 100 },
  );
  await admin("GET", "/pools", undefined, headers);
  await vi.waitFor(
    async () => {
      const refused = (await audit()).entries.filter(({ action }: any) => action === "admin_refused");
      expect(refused.length).toBe(1);
      expect(refused[0].count).toBeGreaterThanOrEqual(4);
    },
    { timeout: 8000, interval: 100 },
  );
});

test("it is bounded, and no number of guesses pushes a deletion out", async () => {
  await createSource();
  // The next refusal is an entry of its own.
  await runInDurableObject(directory(), (_, state) => void state.storage.sql.exec("UPDATE audit SET at = at - 120000"));
  const fill = (count: number, action: string, each: string) =>
    runInDurableObject(directory(), (_, state) => {
      for (let i = 0; i < count; i += 1) {
        state.storage.sql.exec(`INSERT INTO audit (at, action, source, count) VALUES (?, ?, 'filled', ${each})`, i, action);
      }
    });
  await fill(1100, "deleted", "NULL");
  await fill(1200, "admin_refused", "1");
  const rows = (where: string) =>
    runInDurableObject(directory(), (_, state) => state.storage.sql.exec(`SELECT count(*) AS rows FROM audit WHERE ${where}`).one().rows);
  await directory().fetch("http://directory/v1/refused?credential=admin&count=1");
  expect(await rows("action = 'admin_refused'")).toBeLessThanOrEqual(100);
  expect(await rows("action = 'deleted' AND source = 'filled'")).toBe(1100);
  await createSource();
  expect(await rows("count IS NULL")).toBe(1000);
});
