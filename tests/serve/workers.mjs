// What the tests of the cookbook's workers share: an upstream that tells how its calls ended, a worker that runs against it,
// and a lock API that answers as it is told to.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sleep } from "./support.mjs";

export let upstream, folder;
const children = new Set();
/** Calls at the upstream: by path, how each ended. */
export const seen = new Map();

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "swarmvia-cookbook-"));
  // `/source/1500` is answered after 1.5 s; `seen` has "open" until then, "cut" if the caller went away before.
  upstream = createServer(({ url }, response) => {
    seen.set(url, "open");
    const timer = setTimeout(() => response.end("a thing"), Number(url.split("/").at(-1)));
    response.on("close", () => {
      clearTimeout(timer);
      seen.set(url, response.writableFinished ? "answered" : "cut");
    });
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
});

after(async () => {
  for (const child of children) child.kill("SIGKILL");
  upstream.closeAllConnections();
  upstream.close();
  await rm(folder, { recursive: true });
});

export async function until(what, is) {
  for (let tries = 0; !(await is()); tries += 1) {
    assert.ok(tries < 1000, `never: ${what}`);
    await sleep(10);
  }
}

/** Runs a worker for `calls` that take `callMs`; `ended` is how it ended, with what it printed. */
export function start({ command, file }, source, callMs, { key = { ACCESS_KEY: source.key }, calls = 1, flags = [], env = {} } = {}) {
  const path = `/${source.name}/${callMs}`;
  const child = spawn(command, [...flags, file, String(calls)], {
    env: {
      ...process.env,
      LOCK_API: source.api,
      UPSTREAM: `http://127.0.0.1:${upstream.address().port}${path}`,
      ...key,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.add(child);
  const said = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (chunk) => (said.out += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk) => (said.err += chunk));
  const ended = once(child, "close").then(([code]) => children.delete(child) && { ...said, code });
  return { child, path, ended, called: () => until(`a call of ${path}`, () => seen.has(path)) };
}

export const succeeded = ({ code, out, err }) => assert.deepEqual([code, out], [0, "200 a thing\n"], err);
export function failed({ code, out, err }, why) {
  assert.deepEqual([code, out], [1, ""], err);
  assert.match(err, why);
}

/** A lock API that answers as it is told to. `answer(what, call)` gives [status, body, headers], or nothing: no answer. */
export async function fake(answer) {
  const calls = [];
  const api = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request.setEncoding("utf8")) text += chunk;
    const what = request.url.split("/").at(-1);
    const call = { what, at: performance.now(), name: request.headers["idempotency-key"], key: request.headers["x-swarmvia-key"], body: JSON.parse(text || "{}") };
    calls.push(call);
    const [status, body, headers = {}] = (await answer(what, call)) ?? [];
    if (!status) return request.socket.destroy();
    response.writeHead(status, { "x-swarmvia-queued-ms": "0", ...headers }).end(JSON.stringify(body));
  });
  api.listen(0, "127.0.0.1");
  await once(api, "listening");
  const self = `http://127.0.0.1:${api.address().port}/pools/fake/lock`;
  const of = (what) => calls.filter((call) => call.what === what);
  return { of, source: (name) => ({ name, api: self, key: "a key" }), end: () => (api.closeAllConnections(), api.close()) };
}
export const granted = (lease = { termMs: 30_000, renewIntervalMs: 10_000 }) => [200, { slotId: "a-slot-of-the-fake", leaseDeadline: 1e12, requestDeadline: 2e12, ...lease }];
export const never = () => sleep(20_000, [], { ref: false });

export const languages = [
  {
    command: "node",
    file: "docs/cookbook/worker.mjs",
    shim: "asleep.mjs",
    sleeps: (slept) => `import { existsSync } from "node:fs";
const wall = Date.now;
Date.now = () => wall() + (existsSync("${slept}") ? 3_600_000 : 0);
`,
  },
  {
    command: "python3",
    file: "docs/cookbook/worker.py",
    shim: "sitecustomize.py",
    sleeps: (slept) => `import os, time
clock = time.clock_gettime
time.clock_gettime = lambda which: clock(which) + (3600 if which == time.CLOCK_BOOTTIME and os.path.exists("${slept}") else 0)
`,
  },
];

/** Each case for each language, several at once. */
export function inEachLanguage(cases) {
  for (const language of languages) {
    const isHere = spawnSync(language.command, ["--version"]).status === 0;
    const skip = isHere ? false : `${language.command} is not here: install Python 3.9 or later to have its worker checked`;
    describe(language.file, { concurrency: 5, skip }, () => {
      for (const [name, body] of Object.entries(cases)) test(name, () => body(language));
    });
  }
}
