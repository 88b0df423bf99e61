// Histories made by hand, for the tests of the checker: a source of the run "demo", told call by call.
// Moments are milliseconds since the story's beginning; the server's clock is the callers'.

const BEGIN = 1_700_000_000_000;
const TERM_MS = 1000;

export function story(settings = {}) {
  const history = { calls: [], events: [], ends: [], stallMs: 0, driftMs: 0 };
  const base = { source: "demo", epoch: 0, family: "f1" };

  function call(kind, at, back, fields, answer) {
    const entry = {
      id: history.calls.length,
      ...base,
      caller: `caller ${history.calls.length}`,
      kind,
      invokedAt: BEGIN + at,
      sentAt: BEGIN + at,
      reused: true,
      returnedAt: BEGIN + back,
      end: "answered",
      ...answer,
      ...fields,
    };
    history.calls.push(entry);
    return entry;
  }

  const self = {
    history,
    settings(concurrency, at = 0, more = {}) {
      const entry = { lease: { termMs: TERM_MS }, concurrency, ...more };
      history.events.push({ ...base, what: "settings", settings: entry, invokedAt: BEGIN + at, returnedAt: BEGIN + at + 2 });
      return self;
    },
    /** A grant at `granted`, called at `at`; its answer came at `back`. */
    grant(slotId, at, granted = at + 1, { back = granted + 2, queuedMs = granted - at - 1, replayed = false, ...fields } = {}) {
      const body = {
        slotId,
        termMs: TERM_MS,
        leaseDeadline: BEGIN + granted + TERM_MS,
        requestDeadline: BEGIN + granted + 6 * TERM_MS,
      };
      const headers = { "x-swarmvia-queued-ms": String(queuedMs), ...(replayed ? { "x-swarmvia-replayed": "true" } : {}) };
      call("acquire", at, back, { waitMs: 5000, attempt: null, ...fields }, { status: 200, headers, body });
      return self;
    },
    acquire(at, back, fields) {
      call("acquire", at, back, { waitMs: 5000, attempt: null, ...fields }, { status: 429, headers: {}, body: {} });
      return self;
    },
    renew(slotId, at, status = 200, deadline = at + TERM_MS) {
      call(
        "renew",
        at,
        at + 2,
        { slotId, termMs: TERM_MS, status },
        { body: status === 200 ? { leaseDeadline: BEGIN + deadline } : {} },
      );
      return self;
    },
    release(slotId, at, released = true, fields = {}) {
      call("release", at, at + 2, { slotId, ...fields }, { status: 200, body: { released } });
      return self;
    },
    event(what, at, back, fields = {}) {
      history.events.push({ ...base, what, invokedAt: BEGIN + at, returnedAt: BEGIN + back, ...fields });
      return self;
    },
    down(at, back) {
      history.events.push({ what: "down", invokedAt: BEGIN + at, returnedAt: BEGIN + back });
      return self;
    },
    end(state) {
      history.ends.push({ source: "demo", ...state });
      return self;
    },
  };
  return self.settings({ limit: 1, ...settings });
}
