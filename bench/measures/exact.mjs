// What does not depend on the machine: rows written and read, alarms set and calls of objects, for each verb, counted at the
// cursors of the very build that is deployed. `npm test` holds ours against scripts/budget.json.

import { setTimeout as sleep } from "node:timers/promises";
import { counts } from "../lib/counted.mjs";
import { acquire, Line, release, renew } from "../lib/line.mjs";
import { acquireText } from "../lib/calls.mjs";
import { hold } from "./growth.mjs";

const CALLS = 20;

/** For each verb the counts of one call; `held` slots are held meanwhile, and one more now and then. */
export async function perVerb(server, name, held = 0) {
  const limit = Math.max(held + CALLS, 100);
  const source = await server.source(name, { limit: Math.min(limit, 10_000) });
  // With 10,000 slots at most, those of the calls are among them.
  await hold(server, source, Math.min(held, 10_000 - CALLS));
  const line = await Line.open(server.port);
  const warm = await acquire(line, source, 0);
  await release(line, source, warm.id);
  await counts(server);

  const ids = [];
  const verbs = {
    acquire: await each(server, async () => ids.push((await acquire(line, source, 0)).id)),
    renew: await each(server, (i) => renew(line, source, ids[i])),
    release: await each(server, (i) => release(line, source, ids[i])),
  };
  line.close();
  return verbs;
}

async function each(server, call) {
  await sleep(5); // A renewal in the very millisecond of the grant would change nothing.
  for (let i = 0; i < CALLS; i += 1) await call(i);
  return perCall(await counts(server), CALLS);
}

/** Calls of the directory come by the clock, not by the call: they aren't in here. */
const perCall = ({ source }, calls) =>
  Object.fromEntries(["calls", "rowsWritten", "rowsRead", "alarmsSet"].map((what) => [what, source[what] / calls]));

/** A refusal, and a hand-off: a release and the acquire that waited for it. */
export async function perRarer(server, name) {
  const source = await server.source(name, { limit: 1 });
  const [holder, other] = [await Line.open(server.port), await Line.open(server.port)];
  const { id } = await acquire(holder, source, 0);
  await counts(server);
  await other.send(acquireText(source, 0));
  const refusal = perCall(await counts(server), 1);
  const next = acquire(other, source);
  await sleep(50);
  await release(holder, source, id);
  await next;
  const handOff = perCall(await counts(server), 1);
  [holder, other].forEach((line) => line.close());
  return { refusal, "hand-off": handOff };
}
