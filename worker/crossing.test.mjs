// What crosses the border, line by line.

import assert from "node:assert/strict";
import { test } from "node:test";
import { aside, respond, rows, run, shown } from "./crossing.js";

const request = (headers, more = {}) => ({
  method: "POST",
  url: "http://localhost/a?b",
  headers: new Headers(headers),
  ...more,
});

test("a call shows its method, URL, host, length and key; what isn't there is an empty line, what is empty isn't", () => {
  assert.equal(shown(request({})), "POST\nhttp://localhost/a?b\n\n\n\n\n");
  assert.equal(
    shown(request({ Host: "h", "Content-Length": "2", "X-Swarmvia-Key": "" })),
    "POST\nhttp://localhost/a?b\n=h\n=2\n=\n\n",
  );
});

test("authorization is taken over only where there is no key header", () => {
  const both = { "X-Swarmvia-Key": "k", Authorization: "Bearer t" };
  assert.ok(shown(request(both)).endsWith("\n=k\n\n"));
  assert.ok(shown(request({ Authorization: "Bearer t" })).endsWith("\n\n=Bearer t\n"));
});

test("an acquire says its address, waiting time, whether it queues, and its attempt", () => {
  const said = {
    "CF-Connecting-IP": "::1",
    "X-Swarmvia-Queue-Timeout-Ms": "5",
    "X-Swarmvia-No-Queue": "1",
    "Idempotency-Key": "i",
  };
  assert.equal(aside(request(said), false), "=::1\n=5\n=1\n=i\n");
  assert.equal(aside(request({}), false), "\n\n\n\n");
});

test("the address is the peer's only where nobody in front tells it, and then nothing else is", () => {
  const told = { "CF-Connecting-IP": "10.0.0.1" };
  assert.equal(aside(request(told, { cf: { clientIp: "127.0.0.1" } }), true), "=127.0.0.1\n\n\n\n");
  assert.equal(aside(request(told), true), "\n\n\n\n");
});

test("a head is a status and headers by lines", async () => {
  for (const status of [200, 429]) {
    const response = respond("{}", `${status}\nContent-Type\napplication/json\nRetry-After\n7`);
    assert.deepEqual([response.status, await response.text()], [status, "{}"]);
    assert.deepEqual(
      [...response.headers],
      [
        ["content-type", "application/json"],
        ["retry-after", "7"],
      ],
    );
  }
  assert.equal(respond(null, "204\nCache-Control\nno-store").body, null);
});

test("statements get their bindings one by one; rows come with the names of their columns", () => {
  const asked = [];
  const cursor = {
    columnNames: ["a", "b"],
    raw: () => ({
      toArray: () => [
        [1, "x"],
        [null, "y"],
      ],
    }),
  };
  const sql = { exec: (...given) => (asked.push(given), cursor) };
  run(sql, "INSERT", '[1,"x",null]');
  assert.equal(rows(sql, "SELECT", "[2]"), '[["a","b"],[[1,"x"],[null,"y"]]]');
  assert.deepEqual(asked, [
    ["INSERT", 1, "x", null],
    ["SELECT", 2],
  ]);
});
