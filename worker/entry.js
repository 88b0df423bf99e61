// @ts-check
// The entry: what the runtime calls, and what it gets when the wasm has failed.
//
// It stands in place of the entry that worker-build writes (scripts/lib/bundle.mjs), which has the same recovery, but
// behind two proxies and a new object for each call: a tenth of what a lock call takes. It decides nothing.

import * as wasm from "wasm";
import { living, note } from "./instance.js";
import { unavailable } from "./unavailable.js";

export { Directory, Source } from "./objects.js";

Error.stackTraceLimit = 100;

addEventListener("error", (event) => note(event.error));

export default {
  /**
   * @param {Request} request
   * @param {unknown} env
   * @param {ExecutionContext} context
   */
  fetch(request, env, context) {
    living();
    try {
      return wasm.fetch(request, env, context);
    } catch (error) {
      note(error);
      return unavailable(error);
    }
  },

  /**
   * `CONNECT`: nothing is tunnelled. Without a handler the runtime would log an exception for whoever asks.
   *
   * @param {Socket} socket
   */
  connect(socket) {
    return socket.close();
  },
};
