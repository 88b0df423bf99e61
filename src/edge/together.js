// Lock calls that arrive at an object together are served in one turn, and so committed together.
//
// A commit takes longer than all that Rust does for a call, and the runtime commits once per turn. So while one turn's
// writes are on their way, the calls that come in are gathered, and the next turn serves them all. A call that is
// alone is served at once. Nothing is decided or reordered here: first come, first served, and each call is answered
// by itself.

export class Together {
  #serve;
  #gathered = [];
  #isBusy = false;

  /** `serve` takes a request and returns a response, or a promise of one. */
  constructor(serve) {
    this.#serve = serve;
  }

  arrive(request) {
    if (this.#isBusy) return new Promise((resolve, reject) => this.#gathered.push({ request, resolve, reject }));
    this.#rest();
    return this.#serve(request);
  }

  /** Until the runtime has delivered what is there, and committed. */
  #rest() {
    this.#isBusy = true;
    setTimeout(() => this.#turn(), 0);
  }

  #turn() {
    this.#isBusy = false;
    if (this.#gathered.length === 0) return;
    this.#rest();
    const these = this.#gathered;
    this.#gathered = [];
    for (const { request, resolve, reject } of these) {
      try {
        resolve(this.#serve(request));
      } catch (error) {
        reject(error);
      }
    }
  }
}
