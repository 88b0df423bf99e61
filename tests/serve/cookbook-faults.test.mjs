// The workers of the cookbook when something goes wrong: a call that outlasts its lease, a slot taken back, a signal,
// a key that ends, a process that stood still, a service that doesn't answer. The same cases for both languages, at once.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { serve, sleep } from "./support.mjs";

let server, upstream, folder;
const children = new Set();
const seen = new Map(); // calls at the upstream: by path, how each ended

before(async () => {
  server = await serve();
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
  await server.end();
  await rm(folder, { recursive: true });
});

async function until(what, is) {
  for (let tries = 0; !(await is()); tries += 1) {
    assert.ok(tries < 1000, `never: ${what}`);
    await sleep(10);
  }
}

/** Runs a worker for `calls` that take `callMs`; `ended` is how it ended, with what it printed. */
function start({ command, file }, source, callMs, { key = { ACCESS_KEY: source.key }, api, calls = 1, flags = [], env = {} } = {}) {
  const path = `/${source.name}/${callMs}`;
  const child = spawn(command, [...flags, file, String(calls)], {
    env: {
      ...process.env,
      LOCK_API: api ?? `http://127.0.0.1:${server.port}/pools/${source.name}/lock`,
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

/** A source of this language's own, with one slot. */
const sourceOf = ({ command }, name, lease) =>
  server.createSource(`${name}-${command}`, { concurrency: { limit: 1 }, lease: { requestTimeoutMs: 60_000, ...lease } });

const nothingIsHeld = (source) =>
  until(`${source.name} is free`, async () => {
    const { inUse, queueDepth } = await server.state(source);
    return inUse === 0 && queueDepth === 0;
  });

const succeeded = ({ code, out, err }) => assert.deepEqual([code, out], [0, "200 a thing\n"], err);
function failed({ code, out, err }, why) {
  assert.deepEqual([code, out], [1, ""], err);
  assert.match(err, why);
}

/** A key that lives for `ttlMs`, and the file that a worker keeps it in. */
async function keyFile(source, ttlMs) {
  const { body: minted } = await server.admin("POST", `/pools/${source.name}/keys`, { ttlMs });
  const KEY_FILE = join(folder, `${source.name}.json`);
  await writeFile(KEY_FILE, JSON.stringify(minted));
  return { KEY_FILE, minted };
}

/** A lock API that answers as it is told to. `answer(what, call)` gives [status, body, headers], or nothing: no answer. */
async function fake(answer) {
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
  const of = (what) => calls.filter((call) => call.what === what);
  return { of, url: `http://127.0.0.1:${api.address().port}/pools/fake/lock`, end: () => (api.closeAllConnections(), api.close()) };
}
const granted = (lease = { termMs: 30_000, renewIntervalMs: 10_000 }) => [200, { slotId: "a-slot-of-the-fake", leaseDeadline: 1e12, requestDeadline: 2e12, ...lease }];
const never = () => sleep(20_000, [], { ref: false });

const cases = {
  async "a call goes on for as long as its slot is renewed"(language) {
    const source = await sourceOf(language, "long", { termMs: 3000 });
    succeeded(await start(language, source, 4500).ended);
    await nothingIsHeld(source);
  },

  async "a call that can't be renewed any further is stopped in time"(language) {
    const source = await sourceOf(language, "capped", { termMs: 3000, requestTimeoutMs: 4000 });
    const worker = start(language, source, 20_000);
    await worker.called();
    const called = Date.now();
    await until("the call is cut off", () => seen.get(worker.path) === "cut");
    assert.ok(Date.now() - called < 4000, "before the slot is someone else's");
    failed(await worker.ended, /slot was lost: its lease has ended/);
  },

  async "a slot that an operator takes back stops its call, and the error says why"(language) {
    const source = await sourceOf(language, "forced", { termMs: 6000, renewIntervalMs: 300 });
    const worker = start(language, source, 20_000);
    await worker.called();
    const { slots } = (await server.admin("GET", `/pools/${source.name}/slots`)).body;
    assert.equal((await server.admin("DELETE", `/pools/${source.name}/slots/${slots[0].ref}`)).status, 200);
    failed(await worker.ended, /slot was lost: the service has taken it back/);
    assert.equal(seen.get(worker.path), "cut");
  },

  async "SIGTERM gives a held slot back at once"(language) {
    const source = await sourceOf(language, "terminated", {});
    const worker = start(language, source, 20_000);
    await worker.called();
    worker.child.kill("SIGTERM");
    const { code, out } = await worker.ended;
    assert.deepEqual([code, out], [143, ""]);
    assert.equal((await server.state(source)).inUse, 0);
    assert.equal(seen.get(worker.path), "cut");
  },

  async "SIGTERM gives a place in the queue up, and leaves nothing behind"(language) {
    const source = await sourceOf(language, "queued", {});
    const held = await server.grant(source);
    const worker = start(language, source, 0);
    await server.untilDepth(source, 1);
    worker.child.kill("SIGTERM");
    assert.equal((await worker.ended).code, 143);
    await server.untilDepth(source, 0);
    await server.release(source, held);
    assert.equal((await server.state(source)).inUse, 0, "nobody is granted who has left");
    assert.equal(seen.has(worker.path), false);
  },

  async "a key that ends while a slot is held is refreshed"(language) {
    const source = await sourceOf(language, "renewed", { termMs: 6000 });
    const { KEY_FILE, minted } = await keyFile(source, 4000);
    succeeded(await start(language, source, 7000, { key: { KEY_FILE } }).ended);
    await nothingIsHeld(source);
    const kept = JSON.parse(await readFile(KEY_FILE, "utf8"));
    assert.equal(kept.keyId, minted.keyId);
    assert.ok(kept.expiresAt > minted.expiresAt);
  },

  async "a process that stood still past its lease doesn't go on as if it held the slot"(language) {
    const source = await sourceOf(language, "stopped", { termMs: 3000 });
    const worker = start(language, source, 4000);
    await worker.called();
    worker.child.kill("SIGSTOP");
    await until("the upstream has answered", () => seen.get(worker.path) === "answered");
    await nothingIsHeld(source);
    worker.child.kill("SIGCONT");
    failed(await worker.ended, /slot was lost: its lease has ended/);
  },

  async "time asleep counts, though the clock of the process stands still in it"(language) {
    const source = await sourceOf(language, "asleep", {});
    // A machine that has slept for an hour, once the folder has a file `slept`.
    const shim = join(folder, language.command, language.shim);
    await mkdir(join(shim, ".."));
    await writeFile(shim, language.sleeps(join(shim, "..", "slept")));
    const flags = language.command === "node" ? ["--import", shim] : [];
    const worker = start(language, source, 20_000, { flags, env: { PYTHONPATH: join(shim, "..") } });
    await worker.called();
    await writeFile(join(shim, "..", "slept"), "");
    failed(await worker.ended, /slot was lost: its lease has ended/);
  },

  async "SIGTERM gives back what a crowd of calls holds, and what it waits for"(language) {
    const source = await server.createSource(`crowd-${language.command}`, { concurrency: { limit: 3 } });
    const worker = start(language, source, 20_000, { calls: 12 });
    await server.untilDepth(source, 9);
    worker.child.kill("SIGTERM");
    const { code, err } = await worker.ended;
    assert.equal(code, 143);
    await nothingIsHeld(source);
    assert.doesNotMatch(err, /not released|MaxListeners/);
  },

  async "a renewal that fails is no loss"(language) {
    const failures = [[], [503, {}], [500, {}], [401, { message: "in a moment" }]];
    let extended = 1e12;
    const service = await fake((what) => {
      if (what === "acquire") return granted({ termMs: 6000, renewIntervalMs: 300 });
      if (what === "renew") return failures.shift() ?? [200, { leaseDeadline: (extended += 300) }];
      return [200, { released: true }];
    });
    const ended = await start(language, { name: `failures-${language.command}`, key: "a key" }, 3000, { api: service.url }).ended;
    service.end();
    succeeded(ended);
    assert.ok(service.of("renew").length > 4);
    assert.match(ended.err, /a renewal failed, again soon: 401 in a moment/);
  },

  async "a service that has gone silent is a loss when the lease has ended, and nothing is released then"(language) {
    const service = await fake((what) => (what === "acquire" ? granted({ termMs: 2000, renewIntervalMs: 500 }) : never()));
    const worker = start(language, { name: `silent-${language.command}`, key: "a key" }, 20_000, { api: service.url });
    failed(await worker.ended, /slot was lost: its lease has ended/);
    service.end();
    assert.equal(seen.get(worker.path), "cut");
    assert.ok(performance.now() - service.of("acquire")[0].at < 5000);
    assert.equal(service.of("release").length, 0);
  },

  async "a grant that comes when its lease may have ended isn't worked under"(language) {
    const service = await fake(async (what) => {
      if (what === "acquire") await sleep(2000);
      return what === "acquire" ? granted({ termMs: 2000, renewIntervalMs: 500 }) : [200, { released: true }];
    });
    const worker = start(language, { name: `late-${language.command}`, key: "a key" }, 0, { api: service.url });
    failed(await worker.ended, /slot was lost: its lease has ended/);
    service.end();
    assert.equal(seen.has(worker.path), false);
  },

  async "a release that is refused is told"(language) {
    const source = await sourceOf(language, "refused", {});
    const worker = start(language, source, 2000);
    await worker.called();
    await server.admin("DELETE", `/pools/${source.name}/keys/${source.keyId}`);
    const { code, err, out } = await worker.ended;
    assert.deepEqual([code, out], [0, "200 a thing\n"], "the call itself was good");
    assert.match(err, /a slot was not released .* 401/);
    assert.doesNotMatch(err, /sv_at_/);
  },

  async "a release that is refused is tried with a fresh key, then without its report"(language) {
    const { KEY_FILE, minted } = await keyFile(await sourceOf(language, "tried", {}), 600_000);
    const fresh = { ...minted, accessKey: "fresh", refreshToken: "fresh" };
    const service = await fake((what, { key, body }) => {
      if (what === "acquire") return granted();
      if (what === "refresh") return [200, fresh];
      if (key !== "fresh") return [401, { message: "revoked" }];
      return body.status ? [400, { message: "field headers" }] : [200, { released: true }];
    });
    const ended = await start(language, { name: `tried-${language.command}` }, 0, { key: { KEY_FILE }, api: service.url }).ended;
    service.end();
    succeeded(ended);
    assert.deepEqual(service.of("release").map(({ key, body }) => [key, body.status]), [[minted.accessKey, 200], ["fresh", 200], ["fresh", undefined]]);
    assert.equal(service.of("refresh").length, 1);
    assert.equal(ended.err, "");
  },

  async "an acquire without an answer is repeated by its name, a refused one afresh and not too early"(language) {
    const plan = [[], [503, {}, { "Retry-After": "1" }], [429, { message: "full" }, { "Retry-After": "2" }], granted()];
    const service = await fake((what) => (what === "acquire" ? plan.shift() : [200, { released: true }]));
    succeeded(await start(language, { name: `repeated-${language.command}`, key: "a key" }, 0, { api: service.url }).ended);
    service.end();
    const [lost, unavailable, refused, last] = service.of("acquire");
    assert.equal(new Set([lost, unavailable, refused].map(({ name }) => name)).size, 1);
    assert.notEqual(last.name, refused.name);
    assert.ok(refused.at - unavailable.at >= 1000);
    assert.ok(last.at - refused.at >= 2000);
  },

  async "a Retry-After longer than the wait is told at once, and obeyed by whoever reads it"(language) {
    const service = await fake(() => [429, { message: "come back later" }, { "Retry-After": "90" }]);
    const began = performance.now();
    const ended = await start(language, { name: `later-${language.command}`, key: "a key" }, 0, { api: service.url }).ended;
    service.end();
    failed(ended, /429 come back later/);
    assert.equal(service.of("acquire").length, 1);
    assert.ok(performance.now() - began < 10_000);
  },

  async "a grant whose answer was lost as SIGTERM came is taken back"(language) {
    let asked;
    const first = new Promise((resolve) => (asked = resolve));
    const service = await fake((what, { body }) => {
      if (what === "release") return [200, { released: true }];
      if (body.waitMs === 0) return granted();
      asked();
      return never(); // granted, but the answer doesn't arrive
    });
    const worker = start(language, { name: `taken-${language.command}`, key: "a key" }, 0, { api: service.url });
    await first;
    worker.child.kill("SIGTERM");
    assert.equal((await worker.ended).code, 143);
    service.end();
    assert.equal(new Set(service.of("acquire").map(({ name }) => name)).size, 1);
    assert.equal(service.of("release").length, 1);
  },

  async "a refresh without an answer is repeated with the same token, and kept before it is used"(language) {
    const { KEY_FILE, minted } = await keyFile(await sourceOf(language, "kept", {}), 1000);
    await sleep(1100); // it has ended: nothing can be done before there is another
    const fresh = { ...minted, accessKey: "fresh", refreshToken: "fresh", expiresAt: Date.now() + 600_000 };
    const plan = [[], [200, fresh]];
    const service = await fake(async (what, { key }) => {
      if (what === "refresh") return plan.shift();
      const kept = JSON.parse(await readFile(KEY_FILE, "utf8"));
      if (kept.accessKey !== "fresh" || key !== "fresh") return [401, { message: "too early" }];
      return what === "acquire" ? granted() : [200, { released: true }];
    });
    succeeded(await start(language, { name: `kept-${language.command}` }, 0, { key: { KEY_FILE }, api: service.url }).ended);
    service.end();
    assert.deepEqual(service.of("refresh").map(({ body }) => body.refreshToken), [minted.refreshToken, minted.refreshToken]);
  },
};

/** What another program says that imports the worker. */
const importing = (command, flag, program, env) =>
  new Promise((resolve) => {
    const child = spawn(command, [flag, program], { env: { ...process.env, PYTHONPATH: "docs/cookbook", PYTHONDONTWRITEBYTECODE: "1", ...env } });
    let out = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (out += chunk));
    child.on("close", () => resolve(out.trim()));
  });

const languages = [
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

const away = { LOCK_API: "http://127.0.0.1:1/pools/none/lock", ACCESS_KEY: "none" };

test("the JavaScript worker leaves the signals of a program that imports it alone", async () => {
  const program = `await import(process.cwd() + "/docs/cookbook/worker.mjs"); console.log(process.listenerCount("SIGTERM"), process.listenerCount("SIGINT"))`;
  assert.equal(await importing("node", "-e", `(async () => { ${program} })()`, away), "0 0");
});

const noPython = spawnSync("python3", ["--version"]).status === 0 ? false : "python3 is not here";

test("the Python worker leaves the signals of a program that imports it alone", { skip: noPython }, async () => {
  const program = "import signal, worker; print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, signal.getsignal(signal.SIGINT) is signal.default_int_handler)";
  assert.equal(await importing("python3", "-c", program, away), "True True");
});

test("a Python program without threads lets go too when a handler of its own raises, in its call and in the queue", { skip: noPython }, async () => {
  const source = await server.createSource("alone", { concurrency: { limit: 1 } });
  const program = `
import signal, worker
signal.signal(signal.SIGALRM, worker.ended)
signal.setitimer(signal.ITIMER_REAL, 1)
with worker.Slot(20_000) as slot:
    slot.open("http://127.0.0.1:${upstream.address().port}/alone/20000")
`;
  const env = { LOCK_API: `http://127.0.0.1:${server.port}/pools/alone/lock`, ACCESS_KEY: source.key };
  assert.equal(await importing("python3", "-c", program, env), "");
  assert.equal((await server.state(source)).inUse, 0);
  const held = await server.grant(source);
  assert.equal(await importing("python3", "-c", program, env), "");
  await server.untilDepth(source, 0);
  await server.release(source, held);
  await nothingIsHeld(source);
  assert.equal((await server.state(source)).counters.released, 2, "no lease had to end");
});

test("a forked Python process neither shares the key's refresh token nor releases its parent's slot", { skip: noPython }, async () => {
  const source = await server.createSource("forked", { concurrency: { limit: 1 } });
  const { KEY_FILE } = await keyFile(source, 600_000);
  const program = `
import os, worker
with worker.Slot(1000) as slot:
    if os.fork() == 0:
        try:
            worker.key.now()
        except RuntimeError as error:
            print(error, flush=True)
    else:
        os.wait()
        slot.check()
        print(worker.lock(slot.lease["slotId"] + "/renew")[0])
`;
  const out = await importing("python3", "-c", program, { LOCK_API: `http://127.0.0.1:${server.port}/pools/forked/lock`, KEY_FILE });
  assert.match(out, /^a forked process needs a key of its own.*\n200$/);
});

for (const language of languages) {
  const isHere = spawnSync(language.command, ["--version"]).status === 0;
  const skip = isHere ? false : `${language.command} is not here: install Python 3.9 or later to have its worker checked`;
  describe(language.file, { concurrency: 5, skip }, () => {
    for (const [name, body] of Object.entries(cases)) test(name, () => body(language));
  });
}
