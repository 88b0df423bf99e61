// @ts-check
// Lock calls that arrive at an object together are served in one turn, and so committed together.
//
// A commit takes longer than all that Rust does for a call, and the runtime commits once per turn. So a call waits
// until the runtime has come round once, which `sync` tells: by then the calls that came with it are here too, and if
// writes of an earlier turn were on their way, those that came meanwhile. A call that is alone waits no longer than
// that round, some microseconds. Nothing is decided or reordered here: first come, first served, and each call is
// answered by itself.

/**
 * @typedef {object} Gathered
 * @property {string} url
 * @property {Request} request
 * @property {(answer: Response | Promise<Response>) => void} resolve
 * @property {(error: unknown) => void} reject
 */

export class Batch {
  #storage;
  #serve;
  /** @type {Gathered[]} */
  #gathered = [];

  /**
   * @param {Pick<DurableObjectStorage, "sync">} storage
   * @param {(url: string, request: Request) => Response | Promise<Response>} serve takes what `arrive` took
   */
  constructor(storage, serve) {
    this.#storage = storage;
    this.#serve = serve;
  }

  /**
   * @param {string} url
   * @param {Request} request
   * @returns {Promise<Response>}
   */
  arrive(url, request) {
    return new Promise((resolve, reject) => {
      const count = this.#gathered.push({ url, request, resolve, reject });
      if (count === 1) this.#round().then(this.#turn, this.#turn);
    });
  }

  /** Storage that fails fails in the turn, call by call. One that throws must not leave a batch that has no turn. */
  #round() {
    try {
      return this.#storage.sync();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #turn = () => {
    const batch = this.#gathered;
    this.#gathered = [];
    for (const { url, request, resolve, reject } of batch) {
      try {
        resolve(this.#serve(url, request));
      } catch (error) {
        reject(error);
      }
    }
  };
}
