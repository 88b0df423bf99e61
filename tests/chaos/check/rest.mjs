// When everyone has left and every lease has ended, nothing is held and nobody waits.
// Pure.

export function nothingLeft({ ends }) {
  const problems = ends
    .filter(({ inUse, queueDepth }) => inUse !== 0 || queueDepth !== 0)
    .map(({ source, inUse, queueDepth }) => ({
      sentence: `${source}: in the end ${inUse} slots are held and ${queueDepth} wait`,
      calls: [],
    }));
  return { looked: ends.length, problems, figures: {} };
}
