// Tables of Markdown, and figures as people read them.

export function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, i) => (i === 0 ? "---" : "---:"));
  return [line(head), line(rule).replaceAll(" ", ""), ...rows.map(line)].join("\n");
}

/** Three digits that count, and commas: 12,345, 123, 1.23, 0.0123. */
export function figure(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}

/** A median, with the least and the most where there were several rounds. */
export function withSpread(summary) {
  if (!summary) return "–";
  const { median, least, most, rounds } = summary;
  return rounds === 1 ? figure(median) : `${figure(median)} (${figure(least)}–${figure(most)})`;
}
