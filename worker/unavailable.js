// @ts-check
// The answer where the wasm is gone: after a panic in a build that can't unwind it is made anew, and what would have
// gone on is of the one before. The same words as `Problem::unavailable`, since nothing of Rust can be asked for them.

import { REQUEST_ID_HEADER, UNAVAILABLE } from "./agreed.js";

/**
 * @param {unknown} error what is logged, under the id that the caller gets
 * @returns {Response}
 */
export function unavailable(error) {
  const id = crypto.randomUUID().replaceAll("-", "");
  console.error(`a call can't be gone on with: ${error} (request ${id})`);
  const headers = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    [REQUEST_ID_HEADER]: id,
    // 1 to 3 s, so that callers don't come back as one.
    "Retry-After": String(1 + Math.floor(Math.random() * 3)),
  };
  return Response.json({ error: "unavailable", message: UNAVAILABLE }, { status: 503, headers });
}
