// @ts-check
// A lock call to its source's object: with a deadline, repeated where the object was reset, and carried over with the
// time that its caller has waited.
//
// JavaScript, since nothing of Rust may stand while a caller who may leave waits: the runtime then drops what
// waits without a word, and memory of the wasm would never come back. What is here is freed with the request. It
// decides nothing: whatever is no plain answer goes to `settle`, which is Rust again.

import { AGAIN, FIRST_PAUSE_MS, INTERNAL, MOST_TRIES, PATIENCE_MS, QUIET_MS } from "./agreed.js";
import { unavailable } from "./unavailable.js";

/**
 * @typedef {object} Call A lock call on its way; Rust knows it as `PendingCall`.
 * @property {Pick<DurableObjectNamespace, "getByName">} namespace
 * @property {string} source
 * @property {string} url without the waiting time
 * @property {number} wait how long the caller queues, in ms
 * @property {Request} request for `settle`, as is `context`
 * @property {ExecutionContext} context
 * @property {number} started in ms since the epoch
 * @property {boolean} carried whether it queued before
 * @property {number} decisions how often it was decided anew
 *
 * @typedef {(call: Call, status: number, said: string) => Response | Promise<Response>} Settle Rust's: what the caller
 *   is answered where the object gave no plain answer; a status of 0: it gave none at all.
 *
 * @typedef {{ response: Response, said?: string } | { response?: undefined, isFinal: boolean, why: string }} Tried What
 *   one call came to; `said`: the body of an internal answer; `isFinal`: no other call is worth it.
 */

/** What isn't the caller's answer: an internal status and what came with it, or 0 and why there is none. */
export class Unsettled {
  /**
   * @param {number} status
   * @param {string} said
   */
  constructor(status, said) {
    this.status = status;
    this.said = said;
  }
}

/**
 * The object's answer, or what is to be settled. Never rejects.
 *
 * @param {Call} call
 * @returns {Promise<Response | Unsettled>}
 */
export async function callObject(call) {
  let tries = 0;
  let pause = FIRST_PAUSE_MS;
  while (tries < MOST_TRIES) {
    const triedAt = Date.now();
    // Failures that are slow, each within its deadline, must not add up.
    if (tries > 0 && triedAt - call.started > call.wait + PATIENCE_MS) break;
    const gone = call.carried ? Math.max(1, triedAt - call.started) : 0;
    const left = Math.max(0, call.wait - gone);
    const tried = await once(call, `${call.url}&wait=${left}&waited=${gone}`, left + PATIENCE_MS);
    if (tried.response) {
      const { status } = tried.response;
      if (status < INTERNAL) return tried.response;
      if (status !== AGAIN) return new Unsettled(status, tried.said ?? "");
    } else if (tried.isFinal) {
      return new Unsettled(0, tried.why);
    }
    call.carried = call.wait > 0;
    if (left > 0 && Date.now() - triedAt >= QUIET_MS) {
      // It waited well until the object was reset or asked for more: earlier failures and decisions are another matter.
      call.decisions = 0;
      tries = 0;
      pause = FIRST_PAUSE_MS;
    } else {
      tries += 1;
      await new Promise((resolve) => setTimeout(resolve, pause / 2 + Math.random() * pause));
      pause *= 2;
    }
  }
  return new Unsettled(0, "an object kept failing");
}

/**
 * One call with a deadline. An overloaded object is left alone; other failures are worth another try.
 *
 * @param {Call} call
 * @param {string} url
 * @param {number} deadline in ms from now
 * @returns {Promise<Tried>}
 */
function once(call, url, deadline) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, deadline, { isFinal: true, why: "an object did not answer" });
    /** @param {Tried} tried */
    const done = (tried) => {
      clearTimeout(timer);
      resolve(tried);
    };
    /** @param {any} error */
    const failed = (error) => {
      const request = /request=(\w+)/.exec(call.url)?.[1];
      console.error(`a call to an object failed: ${error} (source ${call.source}, request ${request})`);
      done({ isFinal: error?.overloaded === true, why: "an object is overloaded" });
    };
    /** @param {Response} response */
    const answered = (response) => {
      if (response.status < INTERNAL) done({ response });
      // What an object says to its Worker is read within the same deadline.
      else response.text().then((said) => done({ response, said }), failed);
    };
    try {
      // A new stub for each call: one that has failed stays broken.
      call.namespace.getByName(call.source).fetch(url).then(answered, failed);
    } catch (error) {
      failed(error);
    }
  });
}

/**
 * @param {Call} call
 * @param {Settle} settle
 * @returns {Promise<Response>}
 */
async function answer(call, settle) {
  try {
    const came = await callObject(call);
    return came instanceof Unsettled ? await settle(call, came.status, came.said) : came;
  } catch (error) {
    return unavailable(error);
  }
}

/**
 * Begins a call.
 *
 * @param {Call["namespace"]} namespace
 * @param {string} source
 * @param {string} url
 * @param {number} wait
 * @param {Request} request
 * @param {ExecutionContext} context
 * @param {Settle} settle
 */
export function begin(namespace, source, url, wait, request, context, settle) {
  const call = { namespace, source, url, wait, request, context, started: Date.now(), carried: false, decisions: 0 };
  return answer(call, settle);
}

/**
 * Goes on with a call that was decided anew.
 *
 * @param {Call} call
 * @param {string} url
 * @param {Settle} settle
 */
export function goOn(call, url, settle) {
  call.url = url;
  call.decisions += 1;
  return answer(call, settle);
}
