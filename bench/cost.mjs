// What a million lock cycles (an acquire and a release) would cost at Cloudflare's list prices, beyond what a plan includes.

/** In US dollars; https://developers.cloudflare.com/durable-objects/platform/pricing and …/workers/platform/pricing. */
export const PRICES = {
  asOf: "2026-11",
  perMillion: {
    workerRequests: 0.3,
    workerCpuMs: 0.02,
    objectRequests: 0.15,
    rowsWritten: 1,
    rowsRead: 0.001,
    /** Of a gigabyte for a second; an object is billed as 128 MB whatever it uses. */
    gigabyteSeconds: 12.5,
  },
};

const OBJECT_GB = 0.128;
const CYCLE = ["acquire", "release"];

/**
 * `exact` are the counts per verb. `cpuUs` is CPU a request, of Worker and object together, as measured here: more than
 * the Worker's own, which alone is billed. `busyMs` is the time that a call keeps the object busy, taken from here too:
 * the whole time of a call by one caller, so more than what the object itself takes. Calls that overlap share it.
 */
export function costOfCycles(exact, { cpuUs, busyMs }) {
  const sum = (what) => CYCLE.reduce((total, verb) => total + exact[verb][what], 0);
  const price = PRICES.perMillion;
  const parts = {
    workerRequests: CYCLE.length * price.workerRequests,
    workerCpu: cpuUs === null ? null : (CYCLE.length * cpuUs * price.workerCpuMs) / 1000,
    objectRequests: sum("calls") * price.objectRequests,
    // An alarm that is set is a row written.
    rowsWritten: (sum("rowsWritten") + sum("alarmsSet")) * price.rowsWritten,
    rowsRead: sum("rowsRead") * price.rowsRead,
    duration: busyMs === null ? null : (busyMs / 1000) * OBJECT_GB * price.gigabyteSeconds,
  };
  return { ...parts, total: Object.values(parts).reduce((total, part) => total + (part ?? 0), 0) };
}
