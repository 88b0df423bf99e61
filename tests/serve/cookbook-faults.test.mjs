// The workers of the cookbook when something goes wrong: a call that outlasts its lease, a slot taken back, a signal,
// a key that ends, a process that stood still. The same cases for both languages. A service that doesn't answer:
// cookbook-service.test.mjs.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { serve } from "./support.mjs";
import { failed, folder, inEachLanguage, seen, start, succeeded, until, upstream } from "./workers.mjs";

let server;
before(async () => (server = await serve()));
after(() => server.end());

const apiOf = (name) => `http://127.0.0.1:${server.port}/pools/${name}/lock`;

/** A source of this language's own, with one slot. */
async function sourceOf({ command }, name, lease, limit = 1) {
  const source = await server.createSource(`${name}-${command}`, { concurrency: { limit }, lease: { requestTimeoutMs: 60_000, ...lease } });
  return { ...source, api: apiOf(source.name) };
}

const nothingIsHeld = (source) =>
  until(`${source.name} is free`, async () => {
    const { inUse, queueDepth } = await server.state(source);
    return inUse === 0 && queueDepth === 0;
  });

/** A key that lives for `ttlMs`, and the file that a worker keeps it in. */
async function keyFile(source, ttlMs) {
  const { body: minted } = await server.admin("POST", `/pools/${source.name}/keys`, { ttlMs });
  const KEY_FILE = join(folder, `${source.name}.json`);
  await writeFile(KEY_FILE, JSON.stringify(minted));
  return { KEY_FILE, minted };
}

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
    const source = await sourceOf(language, "crowd", {}, 3);
    const worker = start(language, source, 20_000, { calls: 12 });
    await server.untilDepth(source, 9);
    worker.child.kill("SIGTERM");
    const { code, err } = await worker.ended;
    assert.equal(code, 143);
    await nothingIsHeld(source);
    assert.doesNotMatch(err, /not released|MaxListeners/);
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

};

/** What another program says that imports the worker. */
const importing = (command, flag, program, env) =>
  new Promise((resolve) => {
    const child = spawn(command, [flag, program], { env: { ...process.env, PYTHONPATH: "docs/cookbook", PYTHONDONTWRITEBYTECODE: "1", ...env } });
    let out = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (out += chunk));
    child.on("close", () => resolve(out.trim()));
  });

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
  const env = { LOCK_API: apiOf("alone"), ACCESS_KEY: source.key };
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
  const out = await importing("python3", "-c", program, { LOCK_API: apiOf("forked"), KEY_FILE });
  assert.match(out, /^a forked process needs a key of its own.*\n200$/);
});

inEachLanguage(cases);
