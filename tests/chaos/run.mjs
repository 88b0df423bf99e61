// One run: a server, its sources, a crowd of callers, and what is done to them, until the time is up.
// Ends with the history and the counts of the faults that happened. Never judges either.

import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "../serve/support.mjs";
import { record, now } from "./history.mjs";
import { operator } from "./operator.mjs";
import { random } from "./random.mjs";
import { LONGEST_TERM_MS, SOURCES } from "./sources.mjs";
import { WAYS } from "./ways.mjs";
import { worker } from "./worker.mjs";

/** Every run must have caused each of these; one that did not has tested less than it says. */
export const FAULTS = [
  "kill -9 and restart",
  "connections reset mid-wait",
  "connections reset mid-answer",
  "repeats after a lost answer",
  "lost grants given again",
  "attempts made twice at once",
  "holders who vanished",
  "slots kept through a restart",
  "renewals after the lease",
  "releases after the lease",
  "slots released twice",
  "releases of someone else's slot",
  "releases at another source",
  "calls with a garbage key",
  "keys revoked while their callers waited",
  "calls with a revoked key",
  "sources ended and made anew",
  "limits raised",
  "limits lowered",
  "queue bounds changed",
  "minute limits changed",
  "adaptive turned on or off",
];

/** For the last lease to end, and a second for that to be noticed. */
const REST_MS = LONGEST_TERM_MS + 1000;

export async function run({ seed, seconds }) {
  const choices = random(seed);
  const server = await serve();
  const recorder = record();
  try {
    const boss = operator({ server, recorder });
    const sources = SOURCES.map((source) => ({ ...source, current: null, flaps: 0, isEnding: false }));
    for (const source of sources) await boss.create(source, 0);

    const until = now() + seconds * 1000;
    const isOver = () => now() >= until;
    await Promise.all([
      ...sources.flatMap((source) => crowd({ source, sources, choices, isOver, server, recorder, boss })),
      ...sources.filter(({ flap }) => flap.length > 0).map((source) => restless({ source, choices, isOver, boss })),
      killer({ choices, isOver, boss }),
    ]);
    await sleep(REST_MS);
    for (const source of sources) {
      const { inUse, queueDepth } = await server.state(source);
      recorder.history.ends.push({ source: source.name, inUse, queueDepth });
    }
  } finally {
    recorder.stop();
    await server.end();
  }
  return { history: recorder.history, faults: recorder.faults };
}

function crowd({ source, sources, choices, isOver, server, recorder, boss }) {
  const held = []; // Slots that colleagues know of.
  const others = sources.filter((other) => other !== source);
  return Array.from({ length: source.callers }, async (_, i) => {
    const name = `${source.name}-${i}`;
    const chooser = choices.fork(name);
    const caller = worker({ port: server.port, recorder, source, name });
    const scene = { worker: caller, random: chooser, recorder, others, held, operator: boss };
    while (!isOver()) {
      await WAYS[chooser.weighted(source.ways)](scene);
      await sleep(chooser.between(0, 60));
    }
    caller.close();
  });
}

async function restless({ source, choices, isOver, boss }) {
  const chooser = choices.fork(`operator of ${source.name}`);
  for (;;) {
    await sleep(chooser.between(200, 900));
    if (isOver()) return;
    await boss.flap(source, chooser);
  }
}

async function killer({ choices, isOver, boss }) {
  const chooser = choices.fork("killer");
  for (;;) {
    await sleep(chooser.between(2500, 5000));
    if (isOver()) return;
    await boss.kill(chooser.between(0, 400));
  }
}
