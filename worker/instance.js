// @ts-check
// The instance of the wasm that lives, made anew after a panic in a build that can't unwind.

import * as wasm from "wasm";

/** Of the worker crate: whether this instance of the wasm has failed, and which one it is. */
const state = wasm.__worker_init_state();

/** The number of the instance that the next call gets. */
export function living() {
  if (state.criticalError) renew();
  return state.instanceId;
}

/** After a panic in a build that can't unwind the memory of the wasm may be broken: it is made anew for the next call. */
function renew() {
  console.log("The wasm is made anew");
  wasm.__wbg_reset_state();
  state.criticalError = false;
  state.instanceId += 1;
}

/**
 * Takes note of an error that may be the end of the instance.
 *
 * @param {unknown} error
 */
export function note(error) {
  if (!(error instanceof WebAssembly.RuntimeError)) return;
  console.error("The wasm has failed", error);
  state.criticalError = true;
}
