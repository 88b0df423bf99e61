// A worker that holds a slot around each call of an upstream. Node 20 or later, no dependency.
//
//   LOCK_API=… ACCESS_KEY=… UPSTREAM=https://upstream.example/v1/things node worker.mjs [calls]
//
// `npm start` prints LOCK_API and ACCESS_KEY. A worker that outlives its key has KEY_FILE=key.json in place of
// ACCESS_KEY: what minting answered, in a file for this process alone, since two that share a refresh token lose it.
// It is refreshed in time, and kept for the next start. Take all down to `withSlot` over as it is; the lines at the end
// are its use. Nothing here handles signals but those lines.

import { setMaxListeners } from "node:events";
import { readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const { ACCESS_KEY, KEY_FILE, UPSTREAM } = process.env;
const LOCK_API = process.env.LOCK_API?.replace(/\/+$/, "");
for (const [name, value] of Object.entries({ LOCK_API, ACCESS_KEY: ACCESS_KEY || KEY_FILE })) if (!value) throw new Error(`${name} is not set`);
const warn = (text) => console.error(text);

// Our own clock. The one of the process stands still while the machine sleeps, and the wall clock may be set back: where
// the wall clock jumped ahead of the other, time has passed.
let slept = 0;
let seen = { own: performance.now(), wall: Date.now() };
function now() {
  const next = { own: performance.now(), wall: Date.now() };
  const jump = next.wall - seen.wall - (next.own - seen.own);
  if (jump > 50) slept += jump;
  seen = next;
  return next.own + slept;
}

/** One call; status 0 where no answer came. `stop` cuts it off. */
function post(url, body, headers, patienceMs, stop) {
  return new Promise((resolve, reject) => {
    const none = (error) => {
      if (!stop?.aborted) warn(`no answer: ${error.message || error.code}`);
      resolve({ status: 0, headers: {}, body: {} });
    };
    const call = (url.startsWith("https:") ? https : http).request(url, { method: "POST", headers }, async (answer) => {
      let text = "";
      try {
        for await (const chunk of answer.setEncoding("utf8")) text += chunk;
      } catch (error) {
        return none(error);
      }
      try {
        resolve({ status: answer.statusCode, headers: answer.headers, body: JSON.parse(text) });
      } catch {
        resolve({ status: answer.statusCode === 200 ? 0 : answer.statusCode, headers: answer.headers, body: {} });
      }
    });
    // By a reset, which is noticed everywhere; a waiter who leaves quietly may keep its place.
    const cut = () => (call.socket?.readyState === "open" && !call.socket.encrypted ? call.socket.resetAndDestroy() : call.destroy());
    const timer = setTimeout(cut, Math.max(1, patienceMs));
    stop?.addEventListener("abort", cut);
    call.on("error", none).on("close", () => {
      clearTimeout(timer);
      stop?.removeEventListener("abort", cut);
    });
    call.end(JSON.stringify(body ?? {}));
  });
}

let pair, dueAt, spent, refreshing;
let forcedAt = -Infinity;
const kept = () => JSON.parse(readFileSync(KEY_FILE, "utf8"));
function take(fresh) {
  const life = fresh.expiresAt - Date.now();
  [pair, dueAt] = [fresh, fresh.expiresAt - Math.min(Math.max(60_000, life / 10), life / 2)];
}
if (KEY_FILE) [pair, dueAt] = [kept(), kept().expiresAt - 60_000]; // how old it is, nobody says
else [pair, dueAt] = [{ accessKey: ACCESS_KEY, expiresAt: Infinity }, Infinity];

async function key() {
  if (Date.now() >= dueAt) refresh();
  if (Date.now() >= pair.expiresAt) await refreshing; // until then the old one is good
  return pair.accessKey;
}
/** After a 401: whether there is another key to try. It asks for one at most once a minute. */
async function otherKey(shown) {
  if (KEY_FILE && pair.accessKey === shown && now() - forcedAt > 60_000) {
    forcedAt = now();
    refresh();
  }
  await refreshing;
  return pair.accessKey !== shown;
}
// One at a time: a refresh token is good for one use.
const refresh = () => (refreshing ??= trade().catch((error) => warn(`refresh: ${error.message}`)).finally(() => (refreshing = undefined)));
async function trade() {
  dueAt = Date.now() + 5000; // if this fails
  const file = kept();
  if (file.accessKey !== pair.accessKey && file.expiresAt > pair.expiresAt) return take(file); // put there meanwhile
  // No answer: the same token again, which gets the same answer until the new pair was used.
  for (let tries = 3; tries > 0 && pair.refreshToken !== spent; tries -= 1) {
    const { status, body } = await post(LOCK_API.replace(/\/lock$/, "/keys/refresh"), { refreshToken: pair.refreshToken }, {}, 2000);
    if (status === 401) spent = pair.refreshToken;
    if (status === 401) return warn(`${body.message}. Have a new key minted into ${KEY_FILE}`);
    if (status === 200) return keep(body);
    await sleep(500);
  }
}
/** On the disk before it is used, so that a crash loses nothing. */
function keep(fresh) {
  try {
    writeFileSync(`${KEY_FILE}.new`, JSON.stringify(fresh), { mode: 0o600, flush: true });
    renameSync(`${KEY_FILE}.new`, KEY_FILE);
  } catch (error) {
    warn(`the new key can't be kept: ${error.message}`);
    if (pair.expiresAt - Date.now() > 20_000) return; // there is time to try again
  }
  take(fresh);
}

/** A lock call; on 401 once more, with a fresh key. */
async function lock(path, body, { name, patienceMs = 15_000, stop } = {}) {
  for (let again = false; ; again = true) {
    const shown = await key();
    const answer = await post(`${LOCK_API}/${path}`, body, { "X-Swarmvia-Key": shown, ...name }, patienceMs, stop);
    if (answer.status !== 401 || again || !(await otherKey(shown))) return answer;
  }
}
/** No answer of the service itself, so that it may have done what was asked. */
const unheard = (status, body) => status === 0 || status === 408 || (status >= 500 && body.error !== "queue_timeout");

async function acquire(waitMs, stop) {
  const end = now() + waitMs;
  let name, first, unsure;
  for (let failures = 0; ;) {
    const sent = now();
    if (!unsure) [name, first] = [{ "Idempotency-Key": crypto.randomUUID() }, sent];
    const left = Math.max(0, Math.round(end - sent));
    const { status, headers, body } = await lock("acquire", { waitMs: left }, { name, patienceMs: left + 15_000, stop });
    if (status === 200) {
      // The grant is no older than this: a repeat may bring one of an earlier try, unless it has waited for it itself.
      const since = headers["x-swarmvia-replayed"] && headers["x-swarmvia-queued-ms"] === "0" ? first : sent;
      const margin = Math.min(2000, Math.max(250, body.termMs / 20)); // for the work to stop in
      return { ...body, until: since + Number(headers["x-swarmvia-queued-ms"]) + body.termMs - margin };
    }
    unsure = unheard(status, body); // then a grant may have been lost: again by the same name, which brings it back
    if (!unsure && status !== 429 && status !== 504) throw new Error(`acquire: ${status} ${body.message}`);
    failures += unsure;
    const pause = Math.max(1000 * (Number(headers["retry-after"]) || 0), unsure ? Math.random() * Math.min(8000, 500 * 2 ** failures) : 0);
    const fits = now() + pause < end;
    if (fits) await sleep(pause, undefined, { signal: stop }).catch(() => {}); // in full or not at all
    if (fits && !stop?.aborted) continue;
    if (unsure) await giveUp(name);
    stop?.throwIfAborted();
    throw Object.assign(new Error(`no slot within ${waitMs} ms: ${status} ${body.message ?? "no answer"}`), { retryAfterMs: pause });
  }
}
/** What an acquire got that nobody waits for any more goes back. */
async function giveUp(name) {
  const { status, body } = await lock("acquire", { waitMs: 0 }, { name, patienceMs: 5000 });
  if (status === 200) await release(body.slotId, {});
}
async function release(slotId, report) {
  for (const end = now() + 10_000; ;) {
    const { status, body } = await lock(`${slotId}/release`, report, { patienceMs: end - now() });
    if (status === 200) return;
    const again = unheard(status, body) || (status === 400 && Object.keys(report).length > 0);
    if (status === 400) report = {}; // the report is what it can't read
    if (!again || now() + 1000 >= end) return warn(`a slot was not released (…${slotId.slice(-4)}), it ends with its lease: ${status || "no answer"} ${body.message ?? ""}`);
    await sleep(status === 400 ? 0 : 1000);
  }
}

/** The work went on without its slot, or was about to. */
export class SlotLost extends Error {}

/**
 * Runs `work(slot)` under a slot, for which it waits `waitMs` at most. `slot.signal` aborts when the slot is lost, or
 * with the signal `stop`: then nothing is queued for any more, and what is held is released with what is known.
 */
export async function withSlot(waitMs, work, stop) {
  stop?.throwIfAborted();
  const [lease, ended, report] = [await acquire(waitMs, stop), new AbortController(), {}];
  let lost, isOver = false, renewAt = now() + lease.renewIntervalMs;
  const lose = (why) => ended.abort((lost ??= new SlotLost(`the slot was lost: ${why}`)));
  const check = () => now() >= lease.until && lose("its lease has ended");
  async function renew() {
    renewAt = Infinity; // while this one is under way
    const { status, body } = await lock(`${lease.slotId}/renew`, undefined, { patienceMs: lease.until - now() });
    if (isOver || status === 409) return; // 409: it can't be extended, so the work must end before `until`
    if (status === 404) return lose("the service has taken it back");
    if (status === 200) [lease.until, lease.leaseDeadline] = [lease.until + body.leaseDeadline - lease.leaseDeadline, body.leaseDeadline];
    else warn(`a renewal failed, again soon: ${status} ${body.message ?? ""}`);
    renewAt = now() + (status === 200 ? lease.renewIntervalMs : Math.min(1000, lease.renewIntervalMs));
  }
  // Often, since no timer runs while the machine sleeps.
  const timer = setInterval(() => {
    check();
    if (!lost && now() >= renewAt) renew().catch((error) => warn(error.message));
  }, Math.min(250, lease.renewIntervalMs / 4));
  const stopped = () => ended.abort(stop.reason);
  stop?.addEventListener("abort", stopped);
  if (stop?.aborted) stopped();
  const slot = {
    signal: ended.signal,
    /** Before each step that must not be done without the slot. */
    throwIfLost() {
      check();
      ended.signal.throwIfAborted();
    },
    /** What the upstream said of its limits goes into the release, so that they are learned. */
    report(answer) {
      report.status = answer.status;
      report.headers = Object.fromEntries([...answer.headers].filter(([name]) => /limit|retry-after|quota|remaining|reset|^date$/.test(name)));
    },
  };
  try {
    slot.throwIfLost();
    const result = await work(slot);
    check();
    if (lost) throw lost;
    return result;
  } catch (error) {
    check();
    throw lost ?? error;
  } finally {
    isOver = true;
    clearInterval(timer);
    stop?.removeEventListener("abort", stopped);
    if (!lost) await release(lease.slotId, report);
  }
}

/** One upstream call under a slot, for as long as it is renewed. (`fetch` itself gives up after 300 s without a byte.) */
function callUpstream(stop) {
  const work = async (slot) => {
    const answer = await fetch(UPSTREAM, { signal: slot.signal });
    slot.report(answer);
    return { status: answer.status, text: await answer.text() };
  };
  return withSlot(60_000, work, stop);
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  if (!UPSTREAM) throw new Error("UPSTREAM is not set");
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // one a call
  for (const [signal, code] of Object.entries({ SIGTERM: 143, SIGINT: 130 })) {
    process.once(signal, () => {
      process.exitCode = code;
      stop.abort(new Error(`ended by ${signal}`));
    });
  }
  const calls = Array.from({ length: Number(process.argv[2] ?? 1) }, () => callUpstream(stop.signal));
  // All of them, so that each has released its slot before this ends.
  for (const { value, reason } of await Promise.allSettled(calls)) {
    if (value) console.log(value.status, value.text.slice(0, 100));
    else {
      console.error(reason);
      process.exitCode ??= 1;
    }
  }
}
