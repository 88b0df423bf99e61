// The entry: what the runtime calls, and what it gets when the wasm has failed.
//
// It stands in place of the entry that worker-build writes (scripts/lib/bundle.mjs), which has the same recovery, but
// behind two proxies and a new object for each call: a tenth of what a lock call takes. It decides nothing.

import * as wasm from "./index.js";
import { Together } from "./together.js";
import { AGAIN, LOOK_MS, unavailable } from "./waits.js";

Error.stackTraceLimit = 100;

/** Of the worker crate: whether this instance of the wasm has failed, and which one it is. */
const state = wasm.__worker_init_state();

/** After a panic in a build that can't unwind the memory of the wasm may be broken: it is made anew for the next call. */
function renew() {
  console.log("The wasm is made anew");
  wasm.__wbg_reset_state();
  state.criticalError = false;
  state.instanceId += 1;
}

function note(error) {
  if (!(error instanceof WebAssembly.RuntimeError)) return;
  console.error("The wasm has failed", error);
  state.criticalError = true;
}

addEventListener("error", (event) => note(event.error));

export default {
  fetch(request, env, context) {
    if (state.criticalError) renew();
    try {
      return wasm.fetch(request, env, context);
    } catch (error) {
      note(error);
      return unavailable(error);
    }
  },

  /** `CONNECT`: nothing is tunnelled. Without a handler the runtime would log an exception for whoever asks. */
  connect(socket) {
    return socket.close();
  },
};

/** Objects of one of Rust's classes, each of the instance of the wasm that lives. */
class Kept {
  #make;
  #object;
  #instance;

  constructor(make) {
    this.#make = make;
  }

  fetch(request) {
    return this.call((object) => object.fetch(request));
  }

  call(work) {
    if (state.criticalError) renew();
    try {
      if (this.#instance !== state.instanceId) {
        this.#object = this.#make();
        this.#instance = state.instanceId;
        this.forget();
      }
      return work(this.#object);
    } catch (error) {
      note(error);
      throw error;
    }
  }

  /** If there was an instance before, nothing of it goes on. */
  forget() {}
}

const LOCK = wasm.lockBase();

export class Source extends Kept {
  #together;
  /** How each of those who wait is sent back to its Worker. */
  #waiting = new Set();
  /** Rings while anyone waits: the wasm may be made anew for another object, and then nothing of Rust wakes them. */
  #watch;

  constructor(context, env) {
    super(() => new wasm.Source(context, env));
    this.#together = new Together(context.storage, (url, request) => this.#lock(url, request));
  }

  fetch(request) {
    const { url } = request;
    return url.startsWith(LOCK) ? this.#together.arrive(url, request) : super.fetch(request);
  }

  alarm() {
    return this.call((object) => object.alarm());
  }

  #lock(url, request) {
    const answer = this.call((object) => object.lock(url, request));
    return answer instanceof Promise ? this.#unlessForgotten(answer) : answer;
  }

  #unlessForgotten(answer) {
    this.#watch ??= setInterval(() => this.call(() => {}), LOOK_MS);
    return new Promise((resolve, reject) => {
      const again = () => resolve(new Response(null, { status: AGAIN }));
      this.#waiting.add(again);
      answer.finally(() => this.#leaves(again)).then(resolve, reject);
    });
  }

  #leaves(again) {
    this.#waiting.delete(again);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  forget() {
    for (const again of [...this.#waiting]) {
      again();
      this.#leaves(again);
    }
  }
}

export class Directory extends Kept {
  constructor(context, env) {
    super(() => new wasm.Directory(context, env));
  }
}
