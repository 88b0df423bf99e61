// The calls of a lock cycle, as data: what a caller sends to acquire, renew and release at one source of a contender.
// wrk and the Node clients both send what is rendered here, so every contender is sent the same.

/** Where the slot's id goes in a path or a body. */
export const ID = "{id}";
/** As long as an id of ours, for the contender that has none. */
export const MADE_UP_ID = "AAAAAWHFbench-made-up-id-00";
/** As long as a key of ours: those who don't look at keys are sent one all the same. */
const MADE_UP_KEY = `sv_at_${"A".repeat(110)}`;

export const WAIT_MS = 30_000;
/** Longer than any run, so that no renewal is due and no lease ends by itself. */
export const LONG_TERM_MS = 600_000;

/**
 * A source of a contender that speaks the lock routes. `idField` is where the answer to an acquire says which slot it
 * is, null if it doesn't.
 */
export function lockSource(name, { key = MADE_UP_KEY, idField = "slotId" } = {}) {
  const path = `/pools/${name}/lock`;
  return {
    name,
    headers: { "X-Swarmvia-Key": key, "Content-Type": "application/json" },
    idField,
    acquire: { path: `${path}/acquire`, body: (waitMs) => JSON.stringify({ waitMs }) },
    renew: { path: `${path}/${ID}/renew`, body: "" },
    release: { path: `${path}/${ID}/release`, body: '{"status":200}' },
  };
}

/** One request as it goes over the wire. */
export function text(source, { path, body }, id = MADE_UP_ID) {
  const sent = body.replace(ID, id);
  const lines = [
    `POST ${path.replace(ID, id)} HTTP/1.1`,
    "Host: 127.0.0.1",
    ...Object.entries(source.headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(sent)}`,
  ];
  return `${lines.join("\r\n")}\r\n\r\n${sent}`;
}

export const acquireText = (source, waitMs = WAIT_MS) =>
  text(source, { path: source.acquire.path, body: source.acquire.body(waitMs) });

/** Leaves `{id}` in, for who fills it in later; the body's length is that of a real id. */
export function releaseTemplate(source, idLength = MADE_UP_ID.length) {
  const mark = "\u0001".repeat(idLength);
  return text(source, source.release, mark).replaceAll(mark, ID);
}
