// Never lost: no slot stays free for a second while someone waits, whatever became of its last holder. So a holder
// that vanished costs one term and a second, a release nothing.
// Pure. Looks at sources without a minute gate only: there a free slot may well wait.

import { grantedAt, inForce, lowestLimit, waitedMs, wasDown } from "./facts.mjs";

const BOUND_MS = 1000;

export function noneIdle(known) {
  const bound = BOUND_MS + known.stallMs;
  const problems = [];
  let looked = 0;
  for (const place of known.places) {
    if (place.settings.some(({ settings }) => settings.rpm?.limit)) continue;
    const idle = idleSpans(known, place);
    const waiters = place.acquires.filter(
      (call) => call.end === "answered" && [200, 504].includes(call.status) && call.sentAt !== null && waitedMs(call) > 0,
    );
    for (const waiter of waiters) {
      looked += 1;
      const span = idle.find(({ from, to }) => Math.min(to, waiter.returnedAt) - Math.max(from, waiter.sentAt) > bound);
      if (span) {
        problems.push({
          sentence: `${place.name}: ${waiter.caller} waited although a slot was free from ${Math.round(span.from)} to ${Math.round(span.to)}`,
          calls: place.calls.filter((call) => call.invokedAt <= waiter.returnedAt && call.returnedAt >= span.from - 2000),
        });
      }
    }
  }
  return { looked, problems, figures: worstDelays(known) };
}

/** When fewer slots may have been held than the lowest limit that may have been in force. */
function idleSpans(known, place) {
  const steps = [
    ...place.slots.flatMap(({ mayFrom, mayUntil }) => span(mayFrom, mayUntil, 1)),
    ...place.unknown.flatMap(({ from, until }) => span(from, until, 1)),
    // While the server is down nobody is served; nor is it the source that is, once it ended.
    ...known.downs.flatMap(({ invokedAt, returnedAt }) => span(invokedAt, returnedAt ?? Infinity, 1e6)),
    ...(place.endedBy ? span(place.endedBy.invokedAt, Infinity, 1e6) : []),
    ...place.settings.flatMap(({ invokedAt, returnedAt }) => [
      { at: invokedAt, by: 0 },
      { at: returnedAt ?? Infinity, by: 0 },
    ]),
  ].sort((a, b) => a.at - b.at);
  const spans = [];
  let held = 0;
  steps.forEach((step, i) => {
    held += step.by;
    const to = steps[i + 1]?.at ?? Infinity;
    const limits = inForce(place, step.at, to).map(lowestLimit);
    if (to === step.at || limits.length === 0 || held >= Math.min(...limits)) return;
    if (spans.at(-1)?.to === step.at) spans.at(-1).to = to;
    else spans.push({ from: step.at, to });
  });
  return spans;
}

const span = (from, to, by) =>
  from < to
    ? [
        { at: from, by },
        { at: to, by: -by },
      ]
    : [];

/**
 * Where there is one slot, one holder follows another, so it is known who was waited for: how long after the end
 * of a lease, or after a release was sent, the next one had its answer.
 */
function worstDelays(known) {
  const delays = { reclaim: [], handOff: [] };
  for (const place of known.places) {
    if (place.settings.some(({ settings }) => highest(settings) !== 1 || settings.rpm?.limit)) continue;
    place.grants.slice(1).forEach((next, i) => {
      const slot = place.slots.find(({ slotId }) => slotId === place.grants[i].body.slotId);
      const release = slot.releases.find((call) => call.status === 200 && call.body.released);
      const freeAt = release ? release.invokedAt : slot.deadline;
      const isUnclear =
        place.unknown.some(({ from, until }) => until >= slot.mayFrom && from <= next.returnedAt) ||
        wasDown(known, Math.min(freeAt, next.invokedAt), next.returnedAt);
      if (isUnclear || next.sentAt > freeAt - 20 || waitedMs(next) === 0) return;
      if (release) delays.handOff.push(next.returnedAt - freeAt);
      else if (slot.releases.every((call) => call.invokedAt > freeAt)) delays.reclaim.push(grantedAt(next) - freeAt);
    });
  }
  return {
    "vanished holders whose next waiter is known": delays.reclaim.length,
    "worst delay from the end of a lease to the next grant, ms": worst(delays.reclaim),
    "releases whose next waiter is known": delays.handOff.length,
    "worst delay from a release to the next waiter's answer, ms": worst(delays.handOff),
  };
}

const highest = ({ concurrency: { limit = 10, max } }) => max ?? limit;
const worst = (list) => (list.length > 0 ? Math.round(Math.max(...list)) : null);
