// Never over: no more slots are surely held at once than the limit that was in force when the last of them was granted.
// Pure.

import { highestLimit, inForce } from "./facts.mjs";

export function neverOver(known) {
  const problems = [];
  let looked = 0;
  let most = 0;
  for (const place of known.places) {
    const slots = place.slots.filter(({ from, until }) => from < until).sort((a, b) => a.from - b.from);
    const held = new Set();
    for (const slot of slots) {
      for (const other of held) if (other.until <= slot.from) held.delete(other);
      held.add(slot);
      looked += 1;
      most = Math.max(most, held.size);
      const allowed = limitAtTheLastGrant(place, [...held]);
      if (held.size > allowed) {
        problems.push({
          sentence: `${place.name}: ${held.size} slots were held at once, where at most ${allowed} were allowed when the last was granted`,
          calls: [...held].flatMap(({ grants, renews, releases }) => [...grants, ...renews, ...releases]),
        });
      }
    }
  }
  return { looked, problems, figures: { "most slots held at once": most } };
}

/**
 * A lowered limit takes no slot away; but whoever was granted last was granted while all the others were held. It
 * is one of those that may have been last, and the limit one of those that may have been in force then. (A slot is
 * granted between `mayFrom` and `from`.)
 */
function limitAtTheLastGrant(place, held) {
  const latestStart = Math.max(...held.map(({ mayFrom }) => mayFrom));
  const limits = held
    .filter(({ from }) => from >= latestStart)
    .flatMap(({ from }) => inForce(place, latestStart, from))
    .map(highestLimit);
  return Math.max(...limits);
}
