// First come, first served: who surely waited already when another one called is not served after it.
// Pure. Looks at no attempt that was made more than once, since its place may be older than the call.

import { attemptOf, grantedAt, isGranted, waitedMs, wasDown } from "./facts.mjs";

/**
 * So much later a call surely arrives later. All callers are one process, which writes in order, and the server reads
 * in that order however slow it is; calls of one shape then take the same turns to their source. A call with a body
 * takes more of them than one without, so between such two the time that calls took there and back then is added, twice.
 * A connection that had to be opened is first accepted.
 */
const LATER_MS = 50;
const OPENED_MS = 1000;

export function inOrder(known) {
  const problems = [];
  let looked = 0;
  const quick = known.calls.filter((call) => call.end === "answered" && !call.waitMs);
  const isAlone = (call) => !call.attempt || known.attemptSizes.get(attemptOf(call)) === 1;
  for (const place of known.places) {
    const grants = place.grants.filter(isAlone);
    const waiters = place.acquires.filter(
      (call) =>
        call.waitMs > 0 &&
        call.sentAt !== null &&
        isAlone(call) &&
        (isGranted(call) || (call.end === "answered" && call.status === 504)),
    );
    for (const first of waiters) {
      const arrivedBy = first.sentAt + LATER_MS + (first.reused ? 0 : OPENED_MS + known.stallMs);
      const waitedUntil = isGranted(first) ? grantedAt(first) : first.invokedAt + waitedMs(first) - known.slackMs;
      const rivals = grants.filter(
        (later) =>
          later.invokedAt < waitedUntil &&
          later.invokedAt >= arrivedBy &&
          (later.waitMs > 0 || later.invokedAt >= arrivedBy + 2 * slowness(quick, first.invokedAt, later.returnedAt)) &&
          !wasDown(known, first.invokedAt, later.returnedAt),
      );
      looked += rivals.length;
      const overtaker = rivals.find((later) => grantedAt(later) < waitedUntil);
      if (overtaker) {
        problems.push({
          sentence: `${place.name}: ${overtaker.caller} called ${Math.round(overtaker.invokedAt - first.sentAt)} ms after ${first.caller}, who waited, and was served before`,
          calls: [first, overtaker],
        });
      }
    }
  }
  return { looked, problems, figures: {} };
}

/** The longest that a call took which did not wait, of those under way at some moment from `from` to `to`. */
function slowness(quick, from, to) {
  return quick.reduce(
    (worst, { invokedAt, returnedAt }) =>
      invokedAt <= to && returnedAt >= from ? Math.max(worst, returnedAt - invokedAt) : worst,
    0,
  );
}
