// The one answer that JavaScript makes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { quiet } from "./played.mjs";
import { unavailable } from "./unavailable.js";

const HEADERS = ["cache-control", "content-type", "retry-after", "x-content-type-options", "x-swarmvia-request-id"];

test("a 503 that JavaScript makes has all that one of Rust's has, and spreads those who come back", async (t) => {
  const logged = quiet(t);
  const seen = new Set();
  for (let turn = 0; turn < 200; turn += 1) {
    const { status, headers } = unavailable("a test");
    assert.equal(status, 503);
    assert.deepEqual([...headers.keys()].sort(), HEADERS);
    assert.equal(headers.get("content-type"), "application/json");
    const id = headers.get("x-swarmvia-request-id");
    assert.match(id, /^[0-9a-f]{32}$/);
    assert.ok(logged.at(-1).includes(id), "the id finds its line in the log");
    seen.add(headers.get("retry-after"));
  }
  assert.deepEqual([...seen].sort(), ["1", "2", "3"]);
});

test("its body names the error, and says nothing of what went wrong inside", async (t) => {
  quiet(t);
  const { error, message, ...more } = await unavailable(new Error("secret")).json();
  assert.deepEqual([error, more], ["unavailable", {}]);
  assert.match(message, /Retry-After/);
});
