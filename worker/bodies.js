// @ts-check
// Bodies, read within bounds of size and time.

import { unavailable } from "./unavailable.js";

/**
 * @typedef {"large" | "broken"} Unread Why a stream wasn't read.
 * @typedef {Pick<Request, "headers" | "body" | "arrayBuffer">} Readable
 */

/**
 * Reads a stream: its bytes, or in a word why not.
 *
 * @param {ReadableStream<Uint8Array>} stream
 * @param {number} most
 */
export const readStream = (stream, most) => readAll(stream.getReader(), most);

/**
 * @param {ReadableStreamDefaultReader<Uint8Array>} reader
 * @param {number} most
 * @returns {Promise<Uint8Array | Unread>}
 */
async function readAll(reader, most) {
  const chunks = [];
  let length = 0;
  try {
    for (let read; !(read = await reader.read()).done;) {
      length += read.value.byteLength;
      if (length > most) {
        reader.cancel().catch(() => {});
        return "large";
      }
      chunks.push(read.value);
    }
  } catch {
    return "broken";
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

/**
 * Reads a body: its bytes, or in a word why not; `slow` where its end hasn't come in `patience` ms: one that never ends
 * would hold its connection for good.
 *
 * @param {Readable} request
 * @param {number} most
 * @param {number} patience
 * @returns {Promise<Uint8Array | Unread | "slow">}
 */
export async function readRequest(request, most, patience) {
  // A declared length was checked, and holds: it is most calls, and read in one go.
  if (request.headers.has("Content-Length")) {
    const whole = request.arrayBuffer().then((bytes) => new Uint8Array(bytes), broken);
    return unlessSlow(whole, patience, () => {});
  }
  if (!request.body) return new Uint8Array();
  const reader = request.body.getReader();
  return unlessSlow(readAll(reader, most), patience, () => reader.cancel().catch(() => {}));
}

/** @returns {Unread} */
const broken = () => "broken";

/**
 * What `reading` comes to, or `slow`; then `stop` is called.
 *
 * @param {Promise<Uint8Array | Unread>} reading
 * @param {number} patience
 * @param {() => void} stop
 * @returns {Promise<Uint8Array | Unread | "slow">}
 */
function unlessSlow(reading, patience, stop) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve("slow");
      stop();
    }, patience);
    reading.then((read) => {
      clearTimeout(timer);
      resolve(read);
    });
  });
}

/**
 * Reads a body, and only then hands the call on to Rust, with `known` and `said` as they were left here, what was read,
 * and how long that took.
 *
 * @template {Readable} R
 * @param {R} request
 * @param {number} most
 * @param {number} patience
 * @param {ExecutionContext} known
 * @param {string} said
 * @param {(request: R, known: ExecutionContext, said: string, read: Uint8Array | string, took: number) => Response | Promise<Response>} goOn
 * @returns {Promise<Response>}
 */
export async function readThen(request, most, patience, known, said, goOn) {
  const began = Date.now();
  const read = await readRequest(request, most, patience);
  try {
    return await goOn(request, known, said, read, Date.now() - began);
  } catch (error) {
    return unavailable(error);
  }
}
