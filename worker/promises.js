// @ts-check
// Promises of Rust's, kept where its instance of the wasm fails meanwhile: of that one nothing comes any more.

import { AGAIN } from "./agreed.js";
import { unavailable } from "./unavailable.js";

/** How soon it is noticed that the wasm has failed, where nothing else tells. */
export const LOOK_MS = 500;

/** Of the worker crate: which instance of the wasm lives, and whether it has failed. */
const instance = () => globalThis.__worker_init_state;

/**
 * What Rust has promised, or `instead()` where its instance of the wasm fails meanwhile. `promise` is one of a list with
 * one answer, which may be a promise itself.
 *
 * @param {Promise<[Response | Promise<Response>]>} promise
 * @param {() => Response} instead
 * @returns {Promise<Response>}
 */
function unlessFailed(promise, instead) {
  const { instanceId } = instance();
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      const { criticalError, instanceId: living } = instance();
      if (criticalError || living !== instanceId) done(resolve, instead());
    }, LOOK_MS);
    /**
     * @template T
     * @param {(value: T) => void} settle
     * @param {T} value
     */
    const done = (settle, value) => {
      clearInterval(timer);
      settle(value);
    };
    promise.then(
      ([answer]) => done(resolve, answer),
      (error) => done(reject, error),
    );
  });
}

/**
 * A promise of Rust's in the Worker. It goes on to its end though the caller may leave, and the runtime with it: what
 * Rust holds for it would never be freed.
 *
 * @param {Promise<[Response | Promise<Response>]>} promise
 * @param {Pick<ExecutionContext, "waitUntil">} context
 */
export function keepInWorker(promise, context) {
  context.waitUntil(promise.catch(() => {}));
  return unlessFailed(promise, () => unavailable("the wasm failed meanwhile"));
}

/**
 * A promise of Rust's in an object: where it can't be kept, its Worker calls again.
 *
 * @param {Promise<[Response | Promise<Response>]>} promise
 */
export function keepInObject(promise) {
  return unlessFailed(promise, callAgain);
}

/** What an object says to its Worker where it can't answer. */
export const callAgain = () => new Response(null, { status: AGAIN });

/**
 * Holds an answer back.
 *
 * @param {Response} response
 * @param {number} ms
 * @returns {Promise<Response>}
 */
export function later(response, ms) {
  return new Promise((resolve) => setTimeout(resolve, ms, response));
}
