// @ts-check
// What crosses the border between Rust and the runtime on the way of a lock call, each in one go: every crossing, and
// every text that is taken over in it, costs as much as hundreds of steps of Rust. Nothing here decides.

import { IDEMPOTENCY_HEADER, KEY_HEADER, NO_QUEUE_HEADER, QUEUE_TIMEOUT_HEADER } from "./agreed.js";

/**
 * A line for each value: "=" and the value; empty: it isn't there. No header's value can hold a line break.
 *
 * @param {string | null | undefined} value
 */
const line = (value) => (value === null || value === undefined ? "\n" : `=${value}\n`);

/**
 * What a call shows, by lines: method, URL, host, declared length, key header, authorization. See `Shown` in door.rs.
 *
 * @param {Request} request
 */
export function shown(request) {
  const { headers } = request;
  const key = headers.get(KEY_HEADER);
  const authorization = key === null ? headers.get("Authorization") : null;
  return `${request.method}\n${request.url}\n${line(headers.get("Host"))}${line(headers.get("Content-Length"))}${line(key)}${line(authorization)}`;
}

/**
 * What an acquire says beside its body, by lines; see `Aside` in door.rs.
 *
 * @param {Request} request
 * @param {boolean} isPeer nobody in front tells its address
 */
export function aside(request, isPeer) {
  const { headers } = request;
  const address = isPeer ? peerOf(request) : headers.get("CF-Connecting-IP");
  const [timeout, noQueue] = [headers.get(QUEUE_TIMEOUT_HEADER), headers.get(NO_QUEUE_HEADER)];
  return line(address) + line(timeout) + line(noQueue) + line(headers.get(IDEMPOTENCY_HEADER));
}

/**
 * The address as bare workerd tells it.
 *
 * @param {Request} request
 */
const peerOf = (request) => /** @type {{ clientIp?: string } | undefined} */ (request.cf)?.clientIp;

/**
 * Makes a response. Set one by one the headers cost half of what a list does.
 *
 * @param {BodyInit | null | undefined} body
 * @param {string} head by lines: the status, then name and value of each header
 */
export function respond(body, head) {
  const lines = head.split("\n");
  const status = Number(lines[0]);
  const response = status === 200 ? new Response(body) : new Response(body, { status });
  const { headers } = response;
  for (let at = 1; at < lines.length; at += 2) headers.set(lines[at], lines[at + 1]);
  return response;
}

/**
 * Runs a statement.
 *
 * @param {SqlStorage} sql
 * @param {string} statement
 * @param {string} bindings a list as JSON
 */
export function run(sql, statement, bindings) {
  sql.exec(statement, ...JSON.parse(bindings));
}

/**
 * Runs a query; the names of its columns and its rows, each a list, in JSON.
 *
 * @param {SqlStorage} sql
 * @param {string} query
 * @param {string} bindings
 */
export function rows(sql, query, bindings) {
  const cursor = sql.exec(query, ...JSON.parse(bindings));
  const raw = /** @type {{ toArray(): SqlStorageValue[][] }} */ (/** @type {unknown} */ (cursor.raw()));
  return JSON.stringify([cursor.columnNames, raw.toArray()]);
}
