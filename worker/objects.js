// @ts-check
// The classes of the Durable Objects, each around one of Rust's.

import * as wasm from "wasm";
import { Batch } from "./batch.js";
import { living, note } from "./instance.js";
import { Waiters } from "./waiters.js";

/**
 * An object of one of Rust's classes, always of the instance of the wasm that lives.
 *
 * @template {{ fetch(request: Request): Response | Promise<Response> }} O
 */
class Kept {
  /** @type {() => O} */
  #make;
  /** @type {O | undefined} */
  #object;
  /** @type {number | undefined} */
  #instance;

  /** @param {() => O} make */
  constructor(make) {
    this.#make = make;
  }

  /** @param {Request} request */
  fetch(request) {
    return this.call((object) => object.fetch(request));
  }

  /**
   * @template T
   * @param {(object: O) => T} work
   * @returns {T}
   */
  call(work) {
    const instance = living();
    try {
      if (this.#instance !== instance) {
        this.#object = this.#make();
        this.#instance = instance;
        this.forget();
      }
      return work(/** @type {O} */ (this.#object));
    } catch (error) {
      note(error);
      throw error;
    }
  }

  /** If there was an instance before, nothing of it goes on. */
  forget() {}
}

const LOCK = wasm.lockBase();

/** @extends {Kept<wasm.Source>} */
export class Source extends Kept {
  #batch;
  #waiters = new Waiters(() => this.call(() => {}));

  /**
   * @param {DurableObjectState} context
   * @param {unknown} env
   */
  constructor(context, env) {
    super(() => new wasm.Source(context, env));
    this.#batch = new Batch(context.storage, (url, request) => this.#lock(url, request));
  }

  /** @param {Request} request */
  fetch(request) {
    const { url } = request;
    return url.startsWith(LOCK) ? this.#batch.arrive(url, request) : super.fetch(request);
  }

  alarm() {
    return this.call((object) => object.alarm());
  }

  /**
   * @param {string} url
   * @param {Request} request
   */
  #lock(url, request) {
    const answer = this.call((object) => object.lock(url, request));
    return answer instanceof Promise ? this.#waiters.keep(answer) : answer;
  }

  forget() {
    this.#waiters.forget();
  }
}

/** @extends {Kept<wasm.Directory>} */
export class Directory extends Kept {
  /**
   * @param {DurableObjectState} context
   * @param {unknown} env
   */
  constructor(context, env) {
    super(() => new wasm.Directory(context, env));
  }
}
