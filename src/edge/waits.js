// What waits: for a source's object, for a body, for time to pass.
//
// JavaScript, since nothing of Rust may stand while a caller who may leave waits: the runtime then drops what
// waits without a word, and memory of the wasm would never come back. What is here is freed with the request. It
// decides nothing: whatever is no plain answer goes to `settle`, which is Rust again.

/** How long an object may take beyond the time that the caller queues. */
const PATIENCE_MS = 10_000;
/** Calls in a row that may fail. */
const MOST_TRIES = 6;
/** The pause before the second of them; it doubles with each. */
const FIRST_PAUSE_MS = 20;
/** A waiting call that stood this long before it failed starts the count anew. */
const QUIET_MS = 1_000;
/** Statuses from here on are between Worker and object (edge/object.rs). This one says: call again. */
const INTERNAL = 590;
export const AGAIN = 599;

/**
 * `call` has: `namespace`, `source`, `url` (without the waiting time), `wait` (ms), `started` (ms), `carried`
 * (whether it queued before), and whatever else `settle` wants back.
 */
async function callObject(call, settle) {
  let tries = 0;
  let pause = FIRST_PAUSE_MS;
  while (tries < MOST_TRIES) {
    const triedAt = Date.now();
    // Failures that are slow, each within its deadline, must not add up.
    if (tries > 0 && triedAt - call.started > call.wait + PATIENCE_MS) break;
    const gone = call.carried ? Math.max(1, triedAt - call.started) : 0;
    const left = Math.max(0, call.wait - gone);
    const answer = await once(call, `${call.url}&wait=${left}&waited=${gone}`, left + PATIENCE_MS);
    if (answer.response) {
      const { response, said } = answer;
      if (response.status < INTERNAL) return response;
      if (response.status !== AGAIN) return settle(call, response.status, said);
    } else if (answer.isFinal) {
      return settle(call, 0, answer.why);
    }
    call.carried = call.wait > 0;
    if (left > 0 && Date.now() - triedAt >= QUIET_MS) {
      // It waited well until the object was reset or asked for more: earlier failures and decisions are another matter.
      call.decisions = 0;
      tries = 0;
      pause = FIRST_PAUSE_MS;
    } else {
      tries += 1;
      await new Promise((resolve) => setTimeout(resolve, pause / 2 + Math.random() * pause));
      pause *= 2;
    }
  }
  return settle(call, 0, "an object kept failing");
}

/** One call with a deadline. An overloaded object is left alone; other failures are worth another try. */
function once(call, url, deadline) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, deadline, { isFinal: true, why: "an object did not answer" });
    const done = (answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
    const failed = (error) => {
      const request = /request=(\w+)/.exec(call.url)?.[1];
      console.error(`a call to an object failed: ${error} (source ${call.source}, request ${request})`);
      done({ isFinal: error?.overloaded === true, why: "an object is overloaded" });
    };
    const answered = (response) => {
      if (response.status < INTERNAL) done({ response });
      // What an object says to its Worker is read within the same deadline.
      else response.text().then((said) => done({ response, said }), failed);
    };
    try {
      // A new stub for each call: one that has failed stays broken.
      call.namespace.getByName(call.source).fetch(url).then(answered, failed);
    } catch (error) {
      failed(error);
    }
  });
}

/**
 * The answer where the wasm is gone: after a panic in a build that can't unwind it is made anew, and what would have
 * gone on is of the one before. The same words as `Problem::unavailable`, since nothing of Rust can be asked for them.
 */
export function unavailable(error) {
  const id = crypto.randomUUID().replaceAll("-", "");
  console.error(`a call can't be gone on with: ${error} (request ${id})`);
  const headers = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "x-swarmvia-request-id": id,
    // 1 to 3 s, so that callers don't come back as one.
    "Retry-After": String(1 + Math.floor(Math.random() * 3)),
  };
  const problem = { error: "unavailable", message: "The source could not answer; try again after Retry-After." };
  return Response.json(problem, { status: 503, headers });
}

/** Begins a call; `request` and `context` are for `settle`. */
export function begin(namespace, source, url, wait, request, context, settle) {
  const call = { namespace, source, url, wait, request, context, started: Date.now(), carried: false, decisions: 0 };
  return callObject(call, settle).catch(unavailable);
}

/** Goes on with a call that was decided anew. */
export function goOn(call, url, settle) {
  call.url = url;
  call.decisions += 1;
  return callObject(call, settle).catch(unavailable);
}

/** How soon it is noticed that the wasm has failed, where nothing else tells. */
export const LOOK_MS = 500;
/** Of the worker crate: which instance of the wasm lives. */
const instance = () => globalThis.__worker_init_state;

/**
 * What Rust has promised, or `instead()` where its instance of the wasm fails meanwhile: of that one nothing comes any
 * more. `promise` is one of a list with one answer, which may be a promise itself.
 */
function unlessFailed(promise, instead) {
  const { instanceId } = instance();
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      const { criticalError, instanceId: living } = instance();
      if (criticalError || living !== instanceId) done(resolve, instead());
    }, LOOK_MS);
    const done = (settle, value) => {
      clearInterval(timer);
      settle(value);
    };
    promise.then(([answer]) => done(resolve, answer), (error) => done(reject, error));
  });
}

/**
 * A promise of Rust's in the Worker. It goes on to its end though the caller may leave, and the runtime with it: what
 * Rust holds for it would never be freed.
 */
export function keepInWorker(promise, context) {
  context.waitUntil(promise.catch(() => {}));
  return unlessFailed(promise, () => unavailable("the wasm failed meanwhile"));
}

/** A promise of Rust's in an object: where it can't be kept, its Worker calls again. */
export function keepInObject(promise) {
  return unlessFailed(promise, () => new Response(null, { status: AGAIN }));
}

/** Holds an answer back. */
export function later(response, ms) {
  return new Promise((resolve) => setTimeout(resolve, ms, response));
}

/** Reads a stream: its bytes, or in a word why not: `large` or `broken`. */
export const readStream = (stream, most) => readAll(stream.getReader(), most);

async function readAll(reader, most) {
  const chunks = [];
  let length = 0;
  try {
    for (let read; !(read = await reader.read()).done; ) {
      length += read.value.byteLength;
      if (length > most) {
        reader.cancel().catch(() => {});
        return "large";
      }
      chunks.push(read.value);
    }
  } catch {
    return "broken";
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

/**
 * Reads a body: its bytes, or in a word why not: `large`, `broken`, or `slow` where its end hasn't come in `patience`
 * ms: one that never ends would hold its connection for good.
 */
export async function readRequest(request, most, patience) {
  // A declared length was checked, and holds: it is most calls, and read in one go.
  if (request.headers.has("Content-Length")) {
    return unlessSlow(request.arrayBuffer().then((bytes) => new Uint8Array(bytes), () => "broken"), patience, () => {});
  }
  if (!request.body) return new Uint8Array();
  const reader = request.body.getReader();
  return unlessSlow(readAll(reader, most), patience, () => reader.cancel().catch(() => {}));
}

/** What `reading` comes to, or `slow`; then `stop` is called. */
function unlessSlow(reading, patience, stop) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve("slow");
      stop();
    }, patience);
    reading.then((read) => {
      clearTimeout(timer);
      resolve(read);
    });
  });
}

/** Reads a body, and only then hands the call on. */
export async function readThen(request, most, patience, known, said, goOn) {
  const began = Date.now();
  const read = await readRequest(request, most, patience);
  try {
    return await goOn(request, known, said, read, Date.now() - began);
  } catch (error) {
    return unavailable(error);
  }
}
