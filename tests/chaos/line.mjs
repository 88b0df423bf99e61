// One HTTP call over a keep-alive connection, which the caller may cut: while it waits, or when its answer comes.
// Never repeats a call, and never throws: how it ended is the result.

import { request } from "node:http";
import { now } from "./history.mjs";

/** Longer than any call may take: what is still open then is lost. */
const HUNG_MS = 20_000;

/**
 * `cut`: `{ afterMs }` resets the connection at that age of the call, `{ atAnswer: true }` when the answer begins.
 *
 * Fills these fields of `entry`:
 * - `invokedAt`, `returnedAt`; `sentAt`: when the request was surely on its way, null if it never was
 * - `reused`: whether the connection had carried a call before, so was surely open
 * - `end`: `answered`, `broken` (connection lost), `cut` (by us), `hung`
 * - with `answered`: `status`, `headers`, `body`
 */
export function send(entry, { port, agent, path, headers, body, waitMs = 0, cut }) {
  const text = body === undefined ? "" : JSON.stringify(body);
  Object.assign(entry, { invokedAt: now(), sentAt: null, reused: false, returnedAt: null, end: null });
  return new Promise((resolve) => {
    const timers = [];
    const call = request({
      host: "127.0.0.1",
      port,
      method: "POST",
      path,
      headers: { ...headers, "Content-Length": Buffer.byteLength(text) },
      agent,
    });

    function finish(end, answer = {}) {
      if (entry.end !== null) return;
      timers.forEach(clearTimeout);
      Object.assign(entry, { returnedAt: now(), end }, answer);
      resolve(entry);
    }
    function reset(end) {
      if (entry.end !== null) return;
      finish(end);
      // A request that has no connection yet has nothing to reset.
      if (call.socket) call.socket.resetAndDestroy();
      else call.destroy();
    }
    const sent = () => (entry.sentAt = now());

    call.on("error", () => finish("broken"));
    call.on("socket", (socket) => {
      entry.reused = call.reusedSocket;
      if (socket.connecting) socket.once("connect", sent);
      else sent();
    });
    call.on("response", (response) => {
      response.on("error", () => finish("broken"));
      if (cut?.atAnswer) return reset("cut");
      let came = "";
      response.setEncoding("utf8").on("data", (chunk) => (came += chunk));
      response.on("end", () => {
        try {
          finish("answered", { status: response.statusCode, headers: response.headers, body: JSON.parse(came) });
        } catch {
          finish("broken");
        }
      });
    });
    if (cut?.afterMs !== undefined) timers.push(setTimeout(reset, cut.afterMs, "cut"));
    timers.push(setTimeout(reset, waitMs + HUNG_MS, "hung"));
    call.end(text);
  });
}
