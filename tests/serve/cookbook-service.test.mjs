// The workers of the cookbook when the service is slow, silent, refuses, or doesn't know their key any more: a lock API that
// answers as it is told to stands in for it.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fake, failed, folder, granted, inEachLanguage, never, seen, start, succeeded } from "./workers.mjs";
import { sleep } from "./support.mjs";

/** A pair that ends in `ms`, and the file that a worker keeps it in. */
async function keyFile(name, ms) {
  const minted = { accessKey: "minted", refreshToken: "minted", keyId: "k", expiresAt: Date.now() + ms, refreshExpiresAt: Date.now() + 1e9 };
  const KEY_FILE = join(folder, `${name}.json`);
  await writeFile(KEY_FILE, JSON.stringify(minted));
  return { KEY_FILE, minted };
}

const cases = {
  async "a renewal that fails is no loss"(language) {
    const failures = [[], [503, {}], [500, {}], [401, { message: "in a moment" }]];
    let extended = 1e12;
    const service = await fake((what) => {
      if (what === "acquire") return granted({ termMs: 6000, renewIntervalMs: 300 });
      if (what === "renew") return failures.shift() ?? [200, { leaseDeadline: (extended += 300) }];
      return [200, { released: true }];
    });
    const ended = await start(language, service.source(`failures-${language.command}`), 3000).ended;
    service.end();
    succeeded(ended);
    assert.ok(service.of("renew").length > 4);
    assert.match(ended.err, /a renewal failed, again soon: 401 in a moment/);
  },

  async "a service that has gone silent is a loss when the lease has ended, and nothing is released then"(language) {
    const service = await fake((what) => (what === "acquire" ? granted({ termMs: 2000, renewIntervalMs: 500 }) : never()));
    const worker = start(language, service.source(`silent-${language.command}`), 20_000);
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
    const worker = start(language, service.source(`late-${language.command}`), 0);
    failed(await worker.ended, /slot was lost: its lease has ended/);
    service.end();
    assert.equal(seen.has(worker.path), false);
  },

  async "a release that is refused is tried with a fresh key, then without its report"(language) {
    const { KEY_FILE, minted } = await keyFile(`tried-${language.command}`, 600_000);
    const fresh = { ...minted, accessKey: "fresh", refreshToken: "fresh" };
    const service = await fake((what, { key, body }) => {
      if (what === "acquire") return granted();
      if (what === "refresh") return [200, fresh];
      if (key !== "fresh") return [401, { message: "revoked" }];
      return body.status ? [400, { message: "field headers" }] : [200, { released: true }];
    });
    const ended = await start(language, service.source(`tried-${language.command}`), 0, { key: { KEY_FILE } }).ended;
    service.end();
    succeeded(ended);
    assert.deepEqual(service.of("release").map(({ key, body }) => [key, body.status]), [[minted.accessKey, 200], ["fresh", 200], ["fresh", undefined]]);
    assert.equal(service.of("refresh").length, 1);
    assert.equal(ended.err, "");
  },

  async "an acquire without an answer is repeated by its name, a refused one afresh and not too early"(language) {
    const plan = [[], [503, {}, { "Retry-After": "1" }], [429, { message: "full" }, { "Retry-After": "2" }], granted()];
    const service = await fake((what) => (what === "acquire" ? plan.shift() : [200, { released: true }]));
    succeeded(await start(language, service.source(`repeated-${language.command}`), 0).ended);
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
    const ended = await start(language, service.source(`later-${language.command}`), 0).ended;
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
    const worker = start(language, service.source(`taken-${language.command}`), 0);
    await first;
    worker.child.kill("SIGTERM");
    assert.equal((await worker.ended).code, 143);
    service.end();
    assert.equal(new Set(service.of("acquire").map(({ name }) => name)).size, 1);
    assert.equal(service.of("release").length, 1);
  },

  async "a refresh without an answer is repeated with the same token, and kept before it is used"(language) {
    const { KEY_FILE, minted } = await keyFile(`kept-${language.command}`, -1000); // nothing can be done before there is another
    const fresh = { ...minted, accessKey: "fresh", refreshToken: "fresh", expiresAt: Date.now() + 600_000 };
    const plan = [[], [200, fresh]];
    const service = await fake(async (what, { key }) => {
      if (what === "refresh") return plan.shift();
      const kept = JSON.parse(await readFile(KEY_FILE, "utf8"));
      if (kept.accessKey !== "fresh" || key !== "fresh") return [401, { message: "too early" }];
      return what === "acquire" ? granted() : [200, { released: true }];
    });
    succeeded(await start(language, service.source(`kept-${language.command}`), 0, { key: { KEY_FILE } }).ended);
    service.end();
    assert.deepEqual(service.of("refresh").map(({ body }) => body.refreshToken), [minted.refreshToken, minted.refreshToken]);
  },
};

inEachLanguage(cases);
