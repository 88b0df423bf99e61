// What happened in a run, as those outside saw it: calls with the moments they began and ended, and what was
// done to the server and its sources. The checker reads nothing else.
// Never judges, and never looks at what the server says about itself except in answers.
//
// Moments are milliseconds since the epoch by a clock that nobody sets back. Server and callers are on one
// machine; `driftMs` is how far its wall clock moved against that clock, `stallMs` the longest time for which
// this process did not get to run: a machine that stalls us stalls the server too.

export const now = () => performance.timeOrigin + performance.now();

const LOOK_MS = 20;

export function record() {
  const history = { calls: [], events: [], ends: [], stallMs: 0, driftMs: 0 };
  const faults = {};
  const offset = Date.now() - now();
  let looked = now();
  const timer = setInterval(() => {
    history.stallMs = Math.max(history.stallMs, Math.round(now() - looked - LOOK_MS));
    history.driftMs = Math.max(history.driftMs, Math.ceil(Math.abs(Date.now() - now() - offset)));
    looked = now();
  }, LOOK_MS);

  return {
    history,
    faults,
    /** What a fault needs to have happened is known to whoever caused it. */
    fault: (name) => (faults[name] = (faults[name] ?? 0) + 1),
    /** A call enters when it begins, so that order in the list is order in time. */
    call(fields) {
      const entry = { id: history.calls.length, ...fields };
      history.calls.push(entry);
      return entry;
    },
    event(fields) {
      history.events.push(fields);
      return fields;
    },
    stop: () => clearInterval(timer),
  };
}
