// Lock calls that arrive at an object together are served in one turn, and so committed together.
//
// A commit takes longer than all that Rust does for a call, and the runtime commits once per turn. So a call waits
// until the runtime has come round once, which `sync` tells: by then the calls that came with it are here too, and if
// writes of an earlier turn were on their way, those that came meanwhile. A call that is alone waits no longer than
// that round, some microseconds. Nothing is decided or reordered here: first come, first served, and each call is
// answered by itself.

export class Together {
  #storage;
  #serve;
  #gathered = [];

  /** `serve` takes what `arrive` took, and returns a response, or a promise of one. */
  constructor(storage, serve) {
    this.#storage = storage;
    this.#serve = serve;
  }

  arrive(url, request) {
    return new Promise((resolve, reject) => {
      const count = this.#gathered.push({ url, request, resolve, reject });
      // Storage that fails fails in the turn, call by call.
      if (count === 1) this.#storage.sync().then(this.#turn, this.#turn);
    });
  }

  #turn = () => {
    const together = this.#gathered;
    this.#gathered = [];
    for (const { url, request, resolve, reject } of together) {
      try {
        resolve(this.#serve(url, request));
      } catch (error) {
        reject(error);
      }
    }
  };
}
