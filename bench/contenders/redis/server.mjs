// A semaphore in Redis behind a small HTTP server: slots are a sorted set by deadline, each verb is one Lua script, so one
// trip. Who waits, waits in this process in order of arrival; a release hands its slot to the first of them in the same
// script. Several such servers on one Redis would not keep that order; one is the kinder comparison.
//   node server.mjs PORT REDIS_PORT FOLDER

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { openRedis } from "./resp.mjs";

const [port, redisPort, folder] = process.argv.slice(2);
/** How often it is looked whether a holder's lease ended while someone waits. */
const SWEEP_MS = 100;

const GRANT = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
return 1`;
const RENEW = `
local deadline = redis.call('ZSCORE', KEYS[1], ARGV[3])
if not deadline or tonumber(deadline) <= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
return 1`;
// With the id of a waiter: it gets the slot, if there is one.
const RELEASE = `
local released = redis.call('ZREM', KEYS[1], ARGV[5])
if ARGV[4] == '' then return {released, 0} end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return {released, 0} end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
return {released, 1}`;

// Written to disk once a second: a crash of the machine loses that second's grants, which the objects' storage does not.
const args = ["--port", redisPort, "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""];
const child = spawn("redis-server", args, { stdio: "ignore" });
process.on("SIGTERM", () => {
  child.kill("SIGTERM");
  process.exit(0);
});

const redis = await untilOpen();
const [grantScript, renewScript, releaseScript] = await Promise.all([GRANT, RENEW, RELEASE].map((text) => redis("SCRIPT", "LOAD", text)));
const sources = new Map();

async function untilOpen() {
  for (;;) {
    try {
      return await openRedis(Number(redisPort));
    } catch {
      await sleep(20);
    }
  }
}

async function grant(source, id) {
  const now = Date.now();
  const deadline = now + source.termMs;
  const isGranted = await redis("EVALSHA", grantScript, 1, source.key, now, source.limit, deadline, id);
  return isGranted ? { slotId: id, leaseDeadline: deadline, termMs: source.termMs } : null;
}

async function acquire(source, waitMs, response) {
  if (source.waiters.size === 0) {
    const granted = await grant(source, randomUUID());
    if (granted) return answer(response, 200, granted);
  }
  if (!(waitMs > 0) || source.waiters.size >= source.depth) return answer(response, 429, { error: "too_many_requests" });
  const waiter = { id: randomUUID(), response };
  waiter.timer = setTimeout(() => settle(source, waiter, 504, { error: "queue_timeout" }), waitMs);
  source.waiters.add(waiter);
  response.on("close", () => source.waiters.delete(waiter));
  // A slot may have come free between the look and the place in the queue.
  return sweep(source);
}

function settle(source, waiter, status, body) {
  clearTimeout(waiter.timer);
  source.waiters.delete(waiter);
  answer(waiter.response, status, body);
}

/** Gives free slots to those who wait, one at a time, so that order holds. */
async function sweep(source) {
  if (source.isSwept) return;
  source.isSwept = true;
  for (const waiter of source.waiters) {
    if (waiter.isServed) continue;
    waiter.isServed = true;
    const granted = await grant(source, waiter.id);
    waiter.isServed = false;
    if (!granted) break;
    settle(source, waiter, 200, granted);
  }
  source.isSwept = false;
}

async function release(source, id, response) {
  const now = Date.now();
  const deadline = now + source.termMs;
  const next = firstUnserved(source);
  if (next) next.isServed = true;
  const [released, isHandedOver] = await redis("EVALSHA", releaseScript, 1, source.key, now, source.limit, deadline, next?.id ?? "", id);
  if (next) next.isServed = false;
  if (isHandedOver) settle(source, next, 200, { slotId: next.id, leaseDeadline: deadline, termMs: source.termMs });
  answer(response, 200, { released: released === 1 });
}

function firstUnserved(source) {
  for (const waiter of source.waiters) if (!waiter.isServed) return waiter;
  return undefined;
}

async function renew(source, id, response) {
  const now = Date.now();
  const deadline = now + source.termMs;
  const isRenewed = await redis("EVALSHA", renewScript, 1, source.key, now, deadline, id);
  return isRenewed ? answer(response, 200, { leaseDeadline: deadline }) : answer(response, 404, { error: "not_found" });
}

function answer(response, status, body) {
  const text = JSON.stringify(body);
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
  response.end(text);
}

async function serve(request, response) {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  const [, , name, , first, second] = request.url.split("/");
  if (request.method === "PUT") {
    sources.set(name, { ...JSON.parse(body), key: `slots:${name}`, waiters: new Set(), isSwept: false });
    return answer(response, 200, {});
  }
  const source = sources.get(name);
  if (!source) return answer(response, 404, { error: "not_found" });
  if (first === "acquire") return acquire(source, body ? JSON.parse(body).waitMs : 0, response);
  return second === "renew" ? renew(source, first, response) : release(source, first, response);
}

setInterval(() => {
  for (const source of sources.values()) if (source.waiters.size > 0) sweep(source);
}, SWEEP_MS);

createServer(serve).listen(Number(port), "127.0.0.1");
