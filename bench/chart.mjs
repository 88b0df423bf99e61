// The throughput table as an SVG: bars by load, one for each contender, with the spread of the rounds as a whisker.

import { summary } from "./lib/stats.mjs";
import { figure } from "./lib/table.mjs";
import { CALLERS, SOURCES } from "./measures/load.mjs";

const COLOURS = { ours: "#0b7285", hop: "#868e96", "empty-hop": "#ced4da", plain: "#f08c00", redis: "#c92a2a", prefect: "#5f3dc4" };
const LEFT = 64;
const TOP = 56;
const HEIGHT = 260;
const BAR = 18;
const GAP = 28;

const GROUPS = [...CALLERS.map((callers) => [String(callers), `${callers}`]), [`${SOURCES}-sources`, `${SOURCES} sources`]];

export function chart(results) {
  const names = Object.keys(results.contenders);
  const groups = GROUPS.map(([key, label]) => ({
    label,
    bars: names.map((name) => ({ name, of: summary(results.rounds[name]?.[`pairs-${key}`] ?? []) })),
  }));
  const most = Math.max(1, ...groups.flatMap(({ bars }) => bars.map(({ of }) => of?.most ?? 0)));
  const step = niceStep(most / 5);
  const top = Math.ceil(most / step) * step;
  const y = (value) => TOP + HEIGHT * (1 - value / top);
  const groupWidth = names.length * BAR + GAP;
  const width = LEFT + groups.length * groupWidth + GAP;

  const grid = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step).map(
    (value) =>
      `<line x1="${LEFT}" x2="${width - 12}" y1="${y(value)}" y2="${y(value)}" stroke="#868e96" stroke-opacity="0.35"/>` +
      text(LEFT - 8, y(value) + 4, figure(value), "end"),
  );
  const drawn = groups.map(({ label, bars }, g) => {
    const x = LEFT + GAP / 2 + g * groupWidth;
    const own = bars.map(({ name, of }, b) => (of ? bar(x + b * BAR, y, name, of, results.contenders[name].title) : ""));
    return own.join("") + text(x + (names.length * BAR) / 2, TOP + HEIGHT + 18, label, "middle");
  });
  const legend = names.map((name, i) => {
    const x = LEFT + i * 118;
    return `<rect x="${x}" y="28" width="10" height="10" fill="${COLOURS[name]}"/>${text(x + 15, 37, results.contenders[name].title)}`;
  });
  const full = Math.max(width, LEFT + names.length * 118);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${full} ${TOP + HEIGHT + 48}" font-family="sans-serif" font-size="12" fill="#868e96" role="img">
<title>Pairs of acquire and release a second, by callers at one source, and at ${SOURCES} sources</title>
${text(LEFT, 16, "Pairs of acquire and release a second: median of the rounds, and their spread")}
${[...legend, ...grid, ...drawn].join("\n")}
${text(LEFT + (groups.length * groupWidth) / 2, TOP + HEIGHT + 38, "callers at one source, and one caller at each of many", "middle")}
</svg>
`;
}

function bar(x, y, name, { median, least, most, rounds }, title) {
  const middle = x + (BAR - 3) / 2;
  const whisker = rounds > 1 ? `<line x1="${middle}" x2="${middle}" y1="${y(least)}" y2="${y(most)}" stroke="#212529"/>` : "";
  const height = Math.max(0, y(0) - y(median));
  return `<rect x="${x}" y="${y(median)}" width="${BAR - 3}" height="${height}" fill="${COLOURS[name]}"><title>${title}: ${figure(median)}</title></rect>${whisker}`;
}

const text = (x, y, content, anchor = "start") => `<text x="${x}" y="${y}" text-anchor="${anchor}">${content}</text>`;

/** 1, 2 or 5 times a power of ten, at least `least`. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least);
}
