// What JavaScript and Rust both know. Rust tells it in src/protocol and src/wire; a native test (tests/neighbours.rs)
// reads this file and holds each line to what Rust says, so one can't change alone. Nothing else stands here.

/** Statuses from here on are between Worker and object; no caller sees them. */
export const INTERNAL = 590;
/** An object lost its memory, or can't answer: call again. */
export const AGAIN = 599;

/** How long an object may take beyond the time that the caller queues. */
export const PATIENCE_MS = 10_000;
/** Calls in a row that may fail. */
export const MOST_TRIES = 6;
/** The pause before the second of them; it doubles with each. */
export const FIRST_PAUSE_MS = 20;
/** A waiting call that stood this long before it failed starts the count anew. */
export const QUIET_MS = 1_000;

export const KEY_HEADER = "X-Swarmvia-Key";
export const QUEUE_TIMEOUT_HEADER = "X-Swarmvia-Queue-Timeout-Ms";
export const NO_QUEUE_HEADER = "X-Swarmvia-No-Queue";
export const IDEMPOTENCY_HEADER = "Idempotency-Key";
export const REQUEST_ID_HEADER = "x-swarmvia-request-id";

/** What a caller reads where nothing of Rust can be asked for words. */
export const UNAVAILABLE = "The source could not answer; try again after Retry-After.";
