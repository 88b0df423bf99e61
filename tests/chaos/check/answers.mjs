// No answer lost: every call ends in time, with a status that the contract allows for it, or with a broken
// connection while the server was down; and a key counts exactly as long as it is alive.
// Pure.

import { wasDown } from "./facts.mjs";

/**
 * A queue that answers at its deadline, and the way there and back on a machine that does other things too: half of what
 * the service itself allows a source (10 s, then 503).
 */
const LATE_MS = 5000;
/** Who waits under a key that was revoked, or at a source that ended, is told at once: the same way. */
const TOLD_MS = 5000;

const ALLOWED = {
  acquire: [200, 429, 503, 504],
  renew: [200, 404, 409, 503],
  release: [200, 503],
};

export function noAnswerLost(known) {
  const deaths = deathsOf(known);
  const problems = [];
  let latest = 0;
  let unavailable = 0;
  for (const call of known.calls) {
    const complain = (what) =>
      problems.push({ sentence: `${call.source}: ${call.kind} of ${call.caller} ${what}`, calls: [call] });
    const late = call.returnedAt - startOf(call, known) - (call.waitMs ?? 0);
    if (call.end === "cut") continue;
    if (call.end === "hung") complain("was never answered");
    else if (call.end === "broken") {
      if (!wasDown(known, call.invokedAt, call.returnedAt)) complain("lost its connection while the server was up");
    } else {
      if (call.status === 503) unavailable += 1;
      else latest = Math.max(latest, late);
      if (late > LATE_MS + known.stallMs) complain(`was answered ${Math.round(late)} ms late`);
      const wrong = wrongStatus(call, deaths(call), known);
      if (wrong) complain(`was answered ${call.status}: ${wrong}`);
    }
  }
  return {
    looked: known.calls.length,
    problems,
    figures: { "worst lateness of an answer, ms": Math.round(latest), "answers that were 503": unavailable },
  };
}

/** A call that found the server starting waits for it first. */
const startOf = ({ invokedAt, returnedAt }, { downs }) =>
  Math.max(
    invokedAt,
    ...downs.filter((down) => down.invokedAt <= returnedAt && down.returnedAt >= invokedAt).map((down) => down.returnedAt),
  );

function wrongStatus(call, death, known) {
  if (call.family === null) return call.status === 401 ? null : "its key is garbage";
  if (call.status === 401) {
    return death && death.invokedAt <= call.returnedAt ? null : "its key was alive";
  }
  const diedBefore = death && death.returnedAt !== null && death.returnedAt <= call.invokedAt;
  if (diedBefore) return "its key was dead";
  if (
    death &&
    death.returnedAt !== null &&
    call.returnedAt > Math.max(death.returnedAt, startOf(call, known)) + TOLD_MS + known.stallMs
  )
    return "its key died while it waited";
  if (!ALLOWED[call.kind].includes(call.status)) return "the contract knows no such answer";
  if (call.status === 504 && call.waitMs === 0) return "it did not wait";
  return null;
}

/** What ended a call's key: its own revocation or the end of its source, whichever came first. */
function deathsOf({ events, places }) {
  const revoked = new Map(events.filter(({ what }) => what === "revoked").map((event) => [event.family, event]));
  const ended = new Map(places.map(({ name, endedBy }) => [name, endedBy]));
  return ({ family, source, epoch }) =>
    [revoked.get(family), ended.get(`${source}#${epoch}`)].filter(Boolean).sort((a, b) => a.invokedAt - b.invokedAt)[0];
}
