// @ts-check
// The API's document, for `/openapi.json`: beside the wasm rather than in it, since a text that is only passed on
// should not be compiled at every start. The build (scripts/lib/bundle.mjs) makes the JSON from openapi.yaml.

import text from "./openapi.json";

/** The document as text. */
export const openapi = () => text;
