// The API's document, for `/openapi.json`: beside the wasm rather than in it, since a text that is only passed on
// should not be compiled at every start.

/** The document as text. The build (scripts/lib/build.mjs) puts it in place of this word, from openapi.yaml. */
export const openapi = () => "@openapi.yaml@";
