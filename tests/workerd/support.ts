// What the tests share: calls as a caller makes them, sources to call, a clock that can be stopped.
// Every answer is read to its end, and held to what the contract promises of every answer.

import { env, exports } from "cloudflare:workers";
import { afterEach, expect, vi } from "vitest";

export const API = "https://api.swarmvia.cloud";

export interface Answer {
  status: number;
  headers: Headers;
  body: any;
}

export interface Source {
  name: string;
  key: string;
  keyId: string;
}

export interface Grant {
  slotId: string;
  leaseDeadline: number;
  requestDeadline: number;
  termMs: number;
  renewIntervalMs: number;
}

/** What an acquire asks for. `body` goes out as it is, in place of one made of `waitMs`. */
export interface Ask {
  waitMs?: number;
  idempotencyKey?: string;
  key?: string;
  headers?: Record<string, string>;
  body?: BodyInit;
}

export async function call(method: string, url: string, init: { headers?: HeadersInit; body?: BodyInit } = {}): Promise<Answer> {
  const response = await exports.default.fetch(url, { method, redirect: "manual", ...init });
  const text = await response.text();
  const { status, headers } = response;
  expect(headers.get("x-swarmvia-request-id"), `${method} ${url}`).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  expect(headers.get("cache-control"), `${method} ${url}`).toBe("no-store");
  expect(headers.get("content-type"), `${method} ${url}`).toMatch(/^application\/json\b/);
  return { status, headers, body: method === "HEAD" ? null : JSON.parse(text) };
}

/** A call with the admin token; an object as `body` goes out as JSON. */
export function admin(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  return call(method, API + path, {
    headers: { Authorization: `Bearer ${env.ADMIN_TOKEN}`, ...headers },
    body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
  });
}

let made = 0;

/** A new source with these settings, and a key for it. */
export async function createSource(settings: object = {}): Promise<Source> {
  made += 1;
  const name = `source-${made}`;
  const created = await configure({ name }, settings);
  expect(created.status).toBe(201);
  return { name, ...(await mintKey({ name })) };
}

export function configure(source: { name: string }, settings: object, headers: Record<string, string> = {}): Promise<Answer> {
  return admin("PUT", `/pools/${source.name}`, settings, headers);
}

export async function mintKey(source: { name: string }, wanted: object = {}): Promise<{ key: string; keyId: string }> {
  const { status, body } = await admin("POST", `/pools/${source.name}/keys`, wanted);
  expect(status).toBe(201);
  return { key: body.accessKey, keyId: body.keyId };
}

export async function stateOf(source: { name: string }): Promise<any> {
  const { status, body } = await admin("GET", `/pools/${source.name}`);
  expect(status).toBe(200);
  return body.state;
}

/** `path` is what stands after `/lock/`. */
export function lock(source: Source, path: string, ask: Ask = {}): Promise<Answer> {
  const headers: Record<string, string> = { "X-Swarmvia-Key": ask.key ?? source.key, ...ask.headers };
  if (ask.idempotencyKey !== undefined) headers["Idempotency-Key"] = ask.idempotencyKey;
  const body = ask.body ?? (ask.waitMs === undefined ? undefined : JSON.stringify({ waitMs: ask.waitMs }));
  return call("POST", `${API}/pools/${source.name}/lock/${path}`, { headers, body });
}

export const acquire = (source: Source, ask: Ask = {}) => lock(source, "acquire", ask);

export const renew = (source: Source, slot: { slotId: string }, ask: Ask = {}) => lock(source, `${slot.slotId}/renew`, ask);

export function release(source: Source, slot: { slotId: string }, report?: unknown, ask: Ask = {}): Promise<Answer> {
  return lock(source, `${slot.slotId}/release`, { ...ask, body: report === undefined ? ask.body : JSON.stringify(report) });
}

/** An acquire that must be granted. */
export async function grant(source: Source, ask: Ask = {}): Promise<Grant> {
  return granted(await acquire(source, ask));
}

export function granted(answer: Answer): Grant {
  expect({ status: answer.status, error: answer.body.error }).toEqual({ status: 200, error: undefined });
  return answer.body;
}

/** A release that must free the slot. */
export async function free(source: Source, slot: { slotId: string }, report?: unknown): Promise<void> {
  const { status, body } = await release(source, slot, report);
  expect({ status, body }).toEqual({ status: 200, body: { released: true } });
}

export function expectError(answer: Answer, status: number, error: string, more: Record<string, unknown> = {}): void {
  expect({ status: answer.status, ...answer.body }).toMatchObject({ status, error, ...more });
  expect(answer.body.message).toMatch(/^\S.{10,}\.$/s);
}

export function expectHeld(source: Source, count: number): Promise<void> {
  return stateOf(source).then((state) => expect(state.inUse).toBe(count));
}

/** Starts a call that is to wait, and returns once it does. */
export async function waiter(source: Source, ask: Ask = {}): Promise<{ answer: Promise<Answer> }> {
  const { queueDepth } = await stateOf(source);
  const answer = acquire(source, { waitMs: 10_000, ...ask });
  await untilDepth(source, queueDepth + 1);
  return { answer };
}

export function untilDepth(source: { name: string }, depth: number): Promise<void> {
  return vi.waitFor(async () => expect((await stateOf(source)).queueDepth).toBe(depth), { timeout: 3000, interval: 5 });
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Whether a promise is still open after `ms`. */
export async function isOpen(promise: Promise<unknown>, ms = 100): Promise<boolean> {
  const open = Symbol();
  return (await Promise.race([promise, sleep(ms).then(() => open)])) === open;
}

/** Stops the clock, for tests and Worker alike, until the test ends. Only `pass` moves it on. */
export function stopClock(): { now: number; pass(ms: number): void } {
  const clock = {
    now: Date.now(),
    pass(ms: number) {
      clock.now += ms;
      vi.setSystemTime(clock.now);
    },
  };
  clock.pass(0);
  return clock;
}

afterEach(() => {
  vi.useRealTimers();
});

/** The object of a source, for the helpers of cloudflare:test. */
export const objectOf = (source: { name: string }) => env.SOURCES.getByName(source.name);
