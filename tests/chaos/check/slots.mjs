// A slot is one attempt's, for as long as was promised and no longer; it is freed once, and only by its own source's keys.
// Pure.

import { attemptOf, group, isGranted, isReplay } from "./facts.mjs";

/** So long after its deadline a lease is over by anyone's clock. */
const SURELY_OVER_MS = 100;

export function slotsHold(known) {
  const problems = [];
  let looked = 0;
  const complain = (place, sentence, ...calls) =>
    problems.push({ sentence: `${place.name}: ${sentence}`, calls: calls.flat() });
  for (const place of known.places) {
    for (const slot of place.slots) {
      looked += 1;
      if (new Set(slot.grants.map(attemptOf)).size > 1) complain(place, "one slot was given to two attempts", slot.grants);
      const freed = slot.releases.filter((call) => call.status === 200 && call.body.released);
      if (freed.length > 1) complain(place, "one slot was freed twice", slot.grants, freed);
      renewals(known, place, slot, complain);
      const first = slot.firstRelease;
      // Only a first release whose way was not cut is known to find the slot as it was.
      if (
        first?.end === "answered" &&
        first.status === 200 &&
        first.returnedAt < slot.deadline - known.slackMs &&
        isSolid(place, first) &&
        !first.body.released
      ) {
        const rivals = slot.releases.filter((call) => call !== first && call.invokedAt <= first.returnedAt);
        if (rivals.length === 0)
          complain(place, "a release of a held slot was answered as if it were gone", slot.grants, first);
      }
    }
    // Nobody has a slot id but from an answer, so one that this source did not give is another's, or of its former life.
    for (const call of place.calls.filter(
      ({ kind, slotId }) => kind === "release" && !place.slots.some((slot) => slot.slotId === slotId),
    )) {
      looked += 1;
      if (call.status === 200 && call.body.released) complain(place, "a slot of another source was freed", call);
    }
    for (const [, calls] of group(place.acquires.filter(isGranted), attemptOf))
      looked += oneSlotEach(known, place, calls, complain);
  }
  return { looked, problems, figures: { "slots granted": looked } };
}

/** While a slot is held a renewal finds it; once its lease has ended none does. */
function renewals(known, place, slot, complain) {
  const isOpen = slot.renews.some((call) => call.end !== "answered");
  for (const call of slot.renews) {
    if (call.end !== "answered") continue;
    const promised = promisedBefore(slot, call.invokedAt);
    const untouched = slot.releases.every(({ invokedAt }) => invokedAt > call.returnedAt) && isSolid(place, call);
    if (call.status === 404 && call.returnedAt < promised - known.slackMs && untouched) {
      complain(place, "a renewal was told that the slot was gone, before its deadline", slot.grants, slot.renews);
    }
    if (call.status === 200 && !isOpen && call.invokedAt > slotEnd(slot, call) + SURELY_OVER_MS + known.stallMs) {
      complain(place, "an ended lease was revived", slot.grants, slot.renews);
    }
    if (call.status === 200 && call.body.leaseDeadline < promised)
      complain(place, "a renewal shortened a lease", slot.grants, call);
    const firstFreed = slot.releases.filter(({ status }) => status === 200).map(({ returnedAt }) => returnedAt);
    if (call.status === 200 && firstFreed.some((at) => at <= call.invokedAt))
      complain(place, "a released slot was renewed", slot.grants, slot.releases, call);
  }
}

const answers = (slot) => [...slot.grants, ...slot.renews.filter(({ status }) => status === 200)];
/** The latest deadline that had been promised before `at`. */
const promisedBefore = (slot, at) =>
  Math.max(
    0,
    ...answers(slot)
      .filter((call) => call.returnedAt <= at)
      .map(({ body }) => body.leaseDeadline),
  );
/** The latest deadline that any other call may have made before `call` ended. */
const slotEnd = (slot, call) =>
  Math.max(
    ...answers(slot)
      .filter((other) => other !== call && other.invokedAt <= call.returnedAt)
      .map(({ body }) => body.leaseDeadline),
  );
const isSolid = ({ endedBy }, call) => !endedBy || call.returnedAt < endedBy.invokedAt;

/** A repeat, while the slot that the attempt got is surely held, gets that same slot. */
function oneSlotEach(known, place, calls, complain) {
  if (calls.length < 2) return 0;
  for (const repeat of calls) {
    const earlier = place.slots.find(
      (slot) =>
        slot.slotId !== repeat.body.slotId &&
        attemptOf(slot.grants[0]) === attemptOf(repeat) &&
        slot.from <= repeat.invokedAt &&
        repeat.returnedAt < slot.until,
    );
    if (earlier) complain(place, "an attempt got a second slot while it held its first", earlier.grants, repeat);
  }
  const fresh = group(
    calls.filter((call) => !isReplay(call)),
    ({ body }) => body.slotId,
  );
  for (const [, same] of fresh)
    if (same.length > 1 && !same.some(isShared(same))) complain(place, "a slot was granted twice", same);
  return 1;
}

/** Two calls of one attempt that wait at once share one place, and are both told of one grant. */
const isShared = (same) => (call) =>
  same.some((other) => other !== call && other.invokedAt <= call.returnedAt && call.invokedAt <= other.returnedAt);
