// The bare hop: a Worker that hands what it is sent on to an object, in plain JavaScript, and gets an empty answer; no storage.
// What callers send must reach the object of any such service, so this is the limit that the others are held against.

export class Source {
  fetch() {
    return new Response(null);
  }
}

export default {
  fetch(request, env) {
    // http://127.0.0.1:8787/pools/NAME/lock/acquire
    const name = request.url.split("/", 5)[4] ?? "none";
    return env.SOURCES.getByName(name).fetch(request);
  },
};
