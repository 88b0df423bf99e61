// @ts-check
// The lock calls that wait in an object for Rust to answer, each sent back to its Worker where Rust has forgotten it.

import { LOOK_MS, callAgain } from "./promises.js";

export class Waiters {
  /** @type {Set<() => void>} How each is sent back. */
  #again = new Set();
  /** @type {ReturnType<typeof setInterval> | null} */
  #watch = null;
  #look;

  /**
   * @param {() => void} look called again and again while anyone waits: the wasm may be made anew for another object,
   *   and then nothing of Rust wakes them
   */
  constructor(look) {
    this.#look = look;
  }

  /**
   * What Rust has promised, unless it is forgotten before.
   *
   * @param {Promise<Response>} answer
   * @returns {Promise<Response>}
   */
  keep(answer) {
    this.#watch ??= setInterval(this.#look, LOOK_MS);
    return new Promise((resolve, reject) => {
      const again = () => resolve(callAgain());
      this.#again.add(again);
      answer.finally(() => this.#leaves(again)).then(resolve, reject);
    });
  }

  /** Sends all back. */
  forget() {
    for (const again of [...this.#again]) {
      again();
      this.#leaves(again);
    }
  }

  /** @param {() => void} again */
  #leaves(again) {
    this.#again.delete(again);
    if (this.#again.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = null;
  }
}
