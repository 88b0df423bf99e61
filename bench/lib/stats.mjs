// Medians, quantiles and spreads of small samples.

export function quantile(values, share) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)];
  return low + (sorted[Math.ceil(at)] - low) * (at - Math.floor(at));
}

export const median = (values) => quantile(values, 0.5);

/** `{ median, least, most, rounds }` of the values that there are. */
export function summary(values) {
  const there = values.filter((value) => Number.isFinite(value));
  if (there.length === 0) return null;
  return { median: median(there), least: Math.min(...there), most: Math.max(...there), rounds: there.length };
}

/** `{ p50, p99 }`, in ms. */
export const latency = (values) => ({ p50: quantile(values, 0.5), p99: quantile(values, 0.99) });
