// Control routes: the admin token comes first, then the source, then what else the request says.

import { expect, test } from "vitest";
import { admin, acquire, call, API, createSource, expectError, mintKey, sleep, stateOf } from "./support";

const BAD = [
  ["POST", "keys", { ttlMs: -1 }],
  ["POST", "keys", { name: "a\u202eb" }],
  ["POST", "keys", { surprise: 1 }],
  ["POST", "explain", { status: "x" }],
  ["GET", "log?limit=x"],
  ["GET", "log?outcome=nonsense"],
  ["GET", "slots?limit=0"],
  ["GET", "keys?after=?"],
  ["GET", "audit?before=x"],
  ["DELETE", "slots/none"],
  ["DELETE", "keys/none"],
] as const;

test.each(BAD)("%s %s for a source that isn't there is 404, whatever else is wrong", async (method, path, body?: object) => {
  const there = await createSource();
  const wrong = await admin(method, `/pools/${there.name}/${path}`, body);
  expect([400, 404]).toContain(wrong.status);
  const answer = await admin(method, `/pools/not-there/${path}`, body);
  expectError(answer, 404, "not_found", { message: "There is no such source." });
  const stranger = await call(method, `${API}/pools/not-there/${path}`, body && { body: JSON.stringify(body) });
  expectError(stranger, 401, "unauthorized");
});

test("a body that is no JSON doesn't come before the source either", async () => {
  expectError(await admin("POST", "/pools/not-there/keys", "{"), 404, "not_found");
  expectError(await admin("POST", "/pools/not-there/explain", "[]"), 404, "not_found");
});

test("a name is kept without the white space around it, and none is kept that isn't seen", async () => {
  const source = await createSource();
  const { keyId } = await mintKey(source, { name: "  worker 7\u3000" });
  const { body } = await admin("GET", `/pools/${source.name}/keys`);
  expect(body.keys.find((key: { keyId: string }) => key.keyId === keyId).name).toBe("worker 7");
  for (const name of ["", "   ", "a\0b", "a\nb", "\u202eevil", "a\u2066b", "a\u200bb", "\ufeffa", "a\u2028b", "x".repeat(101), 7, "\ud800"]) {
    expectError(await admin("POST", `/pools/${source.name}/keys`, { name }), 400, "invalid_request", { field: "name" });
  }
});

test("what was refused before a source was made is not its own", async () => {
  const name = "made-later";
  for (let times = 0; times < 3; times += 1) expectError(await call("POST", `${API}/pools/${name}/lock/acquire`), 401, "unauthorized");
  await sleep(5); // Moments are whole milliseconds.
  const before = await createSourceNamed(name);
  await sleep(1200);
  expect((await admin("GET", `/pools/${name}/log`)).body.entries).toEqual([]);
  expect((await stateOf(before)).counters.acquires.unauthorized).toBe(0);
  // One made anew, too: the refusals of the one before went with it.
  expectError(await acquire({ ...before, key: "sv_at_none" }), 401, "unauthorized");
  await sleep(5);
  await admin("DELETE", `/pools/${name}`);
  const after = await createSourceNamed(name);
  await sleep(1200);
  expect((await admin("GET", `/pools/${name}/log`)).body.entries).toEqual([]);
  expect((await stateOf(after)).counters.acquires.unauthorized).toBe(0);
  // And those that come from now on are.
  expectError(await acquire({ ...after, key: "sv_at_none" }), 401, "unauthorized");
  await sleep(1200);
  expect((await stateOf(after)).counters.acquires.unauthorized).toBe(1);
});

async function createSourceNamed(name: string) {
  expect((await admin("PUT", `/pools/${name}`, {})).status).toBe(201);
  return { name, ...(await mintKey({ name })) };
}
