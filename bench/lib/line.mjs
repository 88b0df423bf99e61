// One keep-alive connection: a request at a time, as text, on a bare socket. It is the caller of all latency figures,
// so it does as little as it can: no agent, no streams, no headers parsed but the length.

import { connect } from "node:net";
import { once } from "node:events";
import { acquireText, text } from "./calls.mjs";

export class Line {
  #port;
  #socket = null;
  #came = "";
  #waits = null;

  constructor(port) {
    this.#port = port;
  }

  static async open(port) {
    const line = new Line(port);
    await line.#connect();
    return line;
  }

  async #connect() {
    const socket = connect({ host: "127.0.0.1", port: this.#port });
    await once(socket, "connect");
    this.#socket = socket;
    this.#came = "";
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      this.#came += chunk;
      this.#take();
    });
    const broken = (why) => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#waits?.reject(new Error(`the connection broke: ${why?.message ?? "closed"}`));
      this.#waits = null;
    };
    socket.on("error", broken);
    socket.on("close", () => broken());
    socket.on("end", () => broken());
  }

  /** Resolves to `{ status, head, body, at }`; `at` is when the answer was whole. A connection that was closed is opened anew. */
  async send(request) {
    if (!this.#socket) await this.#connect();
    return new Promise((resolve, reject) => {
      this.#waits = { resolve, reject };
      this.#socket.write(request);
    });
  }

  /** Resets the connection if an answer is awaited: a bare workerd does not notice that a waiting caller has merely closed. */
  close() {
    const [socket, waits] = [this.#socket, this.#waits];
    this.#socket = null;
    this.#waits = null;
    if (waits) socket?.resetAndDestroy();
    else socket?.destroy();
  }

  #take() {
    const answer = parse(this.#came);
    if (!answer) return;
    this.#came = "";
    const waits = this.#waits;
    this.#waits = null;
    if (/\r\nconnection: *close/i.test(answer.head)) this.close();
    waits?.resolve(answer);
  }
}

/** A whole answer, or null. */
function parse(came) {
  const end = came.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const head = came.slice(0, end);
  const status = Number(head.slice(9, 12));
  const length = head.match(/\r\ncontent-length: *(\d+)/i);
  const rest = came.slice(end + 4);
  if (length) return rest.length < Number(length[1]) ? null : { status, head, body: rest, at: performance.now() };
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) return { status, head, body: "", at: performance.now() };
  if (!rest.endsWith("0\r\n\r\n")) return null;
  return { status, head, body: unchunk(rest), at: performance.now() };
}

function unchunk(rest) {
  let body = "";
  for (let at = 0; ; ) {
    const line = rest.indexOf("\r\n", at);
    const size = Number.parseInt(rest.slice(at, line), 16);
    if (!size) return body;
    body += rest.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
}

export async function openLines(port, count) {
  const lines = [];
  // In batches, since the backlog of a listening socket is short.
  while (lines.length < count) {
    const batch = Array.from({ length: Math.min(100, count - lines.length) }, () => Line.open(port));
    lines.push(...(await Promise.all(batch)));
  }
  return lines;
}

/** An answer that isn't good ends the measurement: its figure would say nothing. */
export function good(answer) {
  if (answer.status === 200 || answer.status === 204) return answer;
  throw new Error(`an answer was ${answer.status}, not 200: ${answer.body.slice(0, 200)}`);
}

/**
 * A call that is sent again where the contender's own client would: `source.retried` are the statuses. A contender without a
 * queue tells who must wait to come back, and when.
 */
async function persist(line, source, request) {
  for (;;) {
    const answer = await line.send(request);
    if (!source.retried?.includes(answer.status)) return good(answer);
    const pause = Number(answer.head.match(/\r\nretry-after: *([\d.]+)/i)?.[1] ?? 2);
    await new Promise((resolve) => setTimeout(resolve, pause * 1000));
  }
}

/** Acquires, and waits where it must. */
export async function acquire(line, source, waitMs) {
  const answer = await persist(line, source, acquireText(source, waitMs));
  return { id: source.idField ? JSON.parse(answer.body)[source.idField] : undefined, at: answer.at, answer };
}

export const release = (line, source, id) => persist(line, source, text(source, source.release, id));
export const renew = (line, source, id) => persist(line, source, text(source, source.renew, id));
