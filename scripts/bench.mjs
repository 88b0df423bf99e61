// `npm run bench`: how quick, how big and how dear the lock service is, beside other ways to do the same (bench/README.md).
// Installs nothing: who isn't there is skipped with a sentence. Writes the report with --write only.

import { contenders } from "../bench/contenders/index.mjs";
import { measure } from "../bench/measure.mjs";
import { markdown } from "../bench/report.mjs";
import { write } from "../bench/write.mjs";
import { build } from "./lib/build.mjs";
import { main, say, Stop } from "./lib/say.mjs";

const USAGE = "npm run bench -- [--rounds 7] [--seconds 8] [--only ours,hop] [--quick] [--write]";

await main(async () => {
  const options = readOptions(process.argv.slice(2));
  await build();
  const results = await measure(options);
  say(`\n${markdown(results)}`);
  if (options.write) write(results);
});

function readOptions(argv) {
  const options = { only: null, quick: false, write: false };
  const rest = [...argv];
  while (rest.length > 0) {
    const flag = rest.shift();
    if (flag === "--quick" || flag === "--write") options[flag.slice(2)] = true;
    else if (flag === "--rounds" || flag === "--seconds") options[flag.slice(2)] = whole(flag, rest.shift());
    else if (flag === "--only") options.only = names(rest.shift());
    else throw new Stop(`Unknown option ${flag}. ${USAGE}`);
  }
  const { quick } = options;
  return { rounds: quick ? 1 : 7, seconds: quick ? 2 : 8, warmSeconds: quick ? 1 : 8, calls: quick ? 60 : 600, sizes: quick ? [1, 100] : [1, 100, 10_000], ...options };
}

function whole(flag, text) {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Stop(`${flag} takes a whole number above 0. ${USAGE}`);
  return value;
}

function names(text = "") {
  const wanted = text.split(",");
  const unknown = wanted.find((name) => !contenders.some((contender) => contender.name === name));
  if (unknown !== undefined) {
    throw new Stop(`There is no contender called "${unknown}": there are ${contenders.map(({ name }) => name).join(", ")}.`);
  }
  return wanted;
}
