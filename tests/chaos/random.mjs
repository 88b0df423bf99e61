// Choices from a seed. Every choice of a run comes from here, and each chooser has a stream of its own,
// so that one more call of one caller does not change what another one does.
// Never for secrets.

/** A stream of choices; `fork(name)` makes an independent one that depends on the seed and the name only. */
export function random(seed) {
  let state = hash(String(seed));

  /** A number from 0 up to 1 (mulberry32). */
  function next() {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  return {
    fork: (name) => random(`${seed}/${name}`),
    between: (from, to) => from + Math.floor(next() * (to - from + 1)),
    chance: (share) => next() < share,
    pick: (list) => list[Math.floor(next() * list.length)],

    /** A name from `{ name: weight }`. */
    weighted(weights) {
      const entries = Object.entries(weights);
      let point = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) {
        point -= weight;
        if (point < 0) return name;
      }
      return entries.at(-1)[0];
    },
  };
}

/** FNV-1a, 32 bits. */
function hash(text) {
  let value = 0x811c9dc5;
  for (const char of text) value = Math.imul(value ^ char.codePointAt(0), 0x01000193);
  return value;
}
