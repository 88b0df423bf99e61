// The bare hop: a Worker that asks an object, in plain JavaScript, with an empty answer and no storage.
// Nothing on this platform that asks an object can be quicker: it is the limit that the others are held against.
// So nothing is read but the source's name, and the object is not sent what the caller sent.

const ADDRESS = "http://source/";

export class Source {
  fetch() {
    return new Response(null);
  }
}

export default {
  fetch(request, env) {
    // http://127.0.0.1:8787/pools/NAME/lock/acquire
    const name = request.url.split("/", 5)[4] ?? "none";
    return env.SOURCES.getByName(name).fetch(ADDRESS);
  },
};
