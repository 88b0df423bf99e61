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

  /** `serve` takes a request and returns a response, or a promise of one. */
  constructor(storage, serve) {
    this.#storage = storage;
    this.#serve = serve;
  }

  arrive(request) {
    const turn = () => this.#turn();
    // Storage that fails fails in the turn, call by call.
    if (this.#gathered.length === 0) this.#storage.sync().then(turn, turn);
    return new Promise((resolve, reject) => this.#gathered.push({ request, resolve, reject }));
  }

  #turn() {
    const together = this.#gathered;
    this.#gathered = [];
    for (const { request, resolve, reject } of together) {
      try {
        resolve(this.#serve(request));
      } catch (error) {
        reject(error);
      }
    }
  }
}
