// Writes the report where it is kept: results.json, chart.svg, and between the markers of README.md.

import { readFileSync, writeFileSync } from "node:fs";
import { inRoot } from "../scripts/lib/paths.mjs";
import { say, Stop } from "../scripts/lib/say.mjs";
import { chart } from "./chart.mjs";
import { markdown } from "./report.mjs";

const BEGIN = "<!-- results: written by `npm run bench -- --write` -->";
const END = "<!-- end of results -->";

export function write(results) {
  const readme = inRoot("bench", "README.md");
  const text = readFileSync(readme, "utf8");
  const [before, rest] = text.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Stop("bench/README.md has lost its markers: put them back, then run again.");
  writeFileSync(inRoot("bench", "results.json"), `${JSON.stringify(results, null, 1)}\n`);
  writeFileSync(inRoot("bench", "chart.svg"), chart(results));
  writeFileSync(readme, `${before}${BEGIN}\n\n![Pairs a second](chart.svg)\n\n${markdown(results)}\n\n${END}${after}`);
  say("\nwrote bench/results.json, bench/chart.svg and bench/README.md");
}
