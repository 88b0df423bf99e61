// The minute gate: in no 60 seconds are there more grants than the limit that was in force at the last of them.
// Pure. Grants are counted by the server's own moments, across restarts; those of which nobody heard at all are not.

import { grantedAt, inForce } from "./facts.mjs";

const MINUTE_MS = 60_000;

export function minuteKept(known) {
  const problems = [];
  let looked = 0;
  let fullest = 0;
  for (const place of known.places) {
    // The first answer that was heard of a slot: nobody can have renewed it before, so it tells when it was granted.
    const grants = place.slots.map(firstHeard).sort((a, b) => grantedAt(a) - grantedAt(b));
    let oldest = 0;
    grants.forEach((call, i) => {
      while (grantedAt(grants[oldest]) <= grantedAt(call) - MINUTE_MS) oldest += 1;
      const limits = inForce(place, grantedAt(call) - known.slackMs, call.returnedAt).map(
        (settings) => settings.rpm?.limit ?? Infinity,
      );
      const [made, allowed] = [i - oldest + 1, Math.max(...limits)];
      if (allowed === Infinity) return;
      looked += 1;
      fullest = Math.max(fullest, made / allowed);
      if (made > allowed) {
        problems.push({
          sentence: `${place.name}: ${made} grants in 60 s, where ${allowed} were allowed`,
          calls: grants.slice(oldest, i + 1),
        });
      }
    });
  }
  return { looked, problems, figures: { "fullest minute, of its limit": Number(fullest.toFixed(2)) } };
}

const firstHeard = ({ grants }) => grants.reduce((first, call) => (call.returnedAt < first.returnedAt ? call : first));
