// A worker that holds a slot around each call of an upstream. Node 20 or later, no dependency.
//
//   LOCK_API=… ACCESS_KEY=… UPSTREAM=https://upstream.example/v1/things node worker.mjs [calls]
//
// `npm start` prints LOCK_API and ACCESS_KEY. A worker that outlives its key has KEY_FILE=key.json in place of
// ACCESS_KEY: a file of its own with what minting answered. It is refreshed in time, and kept for the next start.
// Take all down to `withSlot` over as it is; the lines at the end are its use.

import { readFileSync, renameSync, writeFileSync } from "node:fs";

const { LOCK_API, ACCESS_KEY, KEY_FILE, UPSTREAM } = process.env;
for (const [name, value] of Object.entries({ LOCK_API, ACCESS_KEY: ACCESS_KEY ?? KEY_FILE, UPSTREAM })) if (!value) throw new Error(`${name} is not set`);
let pair = KEY_FILE ? JSON.parse(readFileSync(KEY_FILE, "utf8")) : { accessKey: ACCESS_KEY, expiresAt: Infinity };
let refreshing; // one at a time: a refresh token is good for one use
async function key() {
  if (pair.expiresAt - Date.now() < 60_000) await (refreshing ??= refresh().finally(() => (refreshing = undefined)));
  return pair.accessKey;
}
async function refresh() {
  // Again at once where no answer came: for 10 s the same token gets the same answer, and later it counts as stolen.
  for (let tries = 3; tries > 0; tries -= 1) {
    try {
      const body = JSON.stringify({ refreshToken: pair.refreshToken });
      const answer = await fetch(new URL("keys/refresh", LOCK_API), { method: "POST", body, signal: AbortSignal.timeout(2000) });
      if (answer.status === 401) return console.error("the refresh token is not good: have a new key minted");
      if (!answer.ok) throw new Error(`refresh: ${answer.status}`);
      const fresh = await answer.json();
      // Kept before it is used, so that a crash loses nothing.
      writeFileSync(`${KEY_FILE}.new`, JSON.stringify(fresh), { mode: 0o600 });
      renameSync(`${KEY_FILE}.new`, KEY_FILE);
      pair = fresh;
      return;
    } catch (error) {
      console.error(error);
      await sleep(500);
    }
  }
}
const now = () => performance.now(); // our own clock, which nobody sets back
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const post = async (path, body, headers = {}, patienceMs = 15_000) =>
  fetch(`${LOCK_API}/${path}`, {
    method: "POST",
    headers: { "X-Swarmvia-Key": await key(), ...headers },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(Math.max(1, Math.ceil(patienceMs))),
  })
    .then(async (answer) => ({ status: answer.status, headers: answer.headers, body: await answer.json() }))
    .catch((error) => {
      console.error(`no answer: ${error.cause?.message || error.cause?.code || error.message}`); // and so again, soon
      return { status: 0, headers: new Headers() };
    });
async function acquire(waitMs) {
  const name = { "Idempotency-Key": crypto.randomUUID() };
  for (let first = now(); ;) {
    const sent = now();
    const { status, headers, body } = await post("acquire", { waitMs }, name, waitMs + 15_000);
    const since = headers.has("x-swarmvia-replayed") ? first : sent; // the grant is no older than this
    if (status === 200) return { ...body, until: since + Number(headers.get("x-swarmvia-queued-ms")) + body.termMs };
    if (![0, 429, 503, 504].includes(status)) throw new Error(`acquire: ${status} ${body.message}`);
    await sleep(1000 * (headers.get("Retry-After") ?? (status === 504 ? 0 : 1)));
    if (status === 429 || status === 504) first = now(); // nothing is held; else a grant may have been lost
  }
}
/** Runs `work(signal, report)` under a slot; the signal aborts when the slot is lost. */
export async function withSlot(waitMs, work) {
  const [lease, lost, report] = [await acquire(waitMs), new AbortController(), {}];
  let isOver = false, timer;
  const renewIn = (ms) => (timer = setTimeout(renew, Math.min(ms, lease.until - now())));
  async function renew() {
    if (now() >= lease.until) return lost.abort(new Error("the lease has ended"));
    const { status, body } = await post(`${lease.slotId}/renew`, undefined, {}, lease.until - now());
    if (status === 404) return lost.abort(new Error("the slot was lost"));
    if (status === 200) [lease.until, lease.leaseDeadline] = [lease.until + body.leaseDeadline - lease.leaseDeadline, body.leaseDeadline];
    // 409: it can't be extended, so stop at `until`. Anything else: the renewal failed, try again soon.
    const pause = { 200: lease.renewIntervalMs, 409: Infinity }[status] ?? Math.min(1000, lease.renewIntervalMs);
    if (!isOver) renewIn(pause);
  }
  renewIn(lease.renewIntervalMs);
  try {
    return await work(lost.signal, report);
  } finally {
    isOver = true;
    clearTimeout(timer);
    const release = async () => (await post(`${lease.slotId}/release`, report)).status;
    for (let tries = 3; tries > 0 && [0, 503].includes(await release()); tries -= 1) await sleep(1000);
  }
}

/** One upstream call under a slot. What the upstream said goes into the release, so that the limits are learned. */
async function callUpstream() {
  return withSlot(10_000, async (signal, report) => {
    const answer = await fetch(UPSTREAM, { signal });
    report.status = answer.status;
    report.headers = Object.fromEntries([...answer.headers].filter(([name]) => /limit|retry-after|quota|^date$/.test(name)));
    return { status: answer.status, text: await answer.text() };
  });
}

const calls = Array.from({ length: Number(process.argv[2] ?? 1) }, callUpstream);
// All of them, so that each has released its slot before this ends.
for (const { value, reason } of await Promise.allSettled(calls)) {
  if (value) console.log(value.status, value.text.slice(0, 100));
  else {
    console.error(reason);
    process.exitCode = 1;
  }
}
