// Where the Worker is that counts what another one does: rows at the cursors, calls of objects, alarms.

import { setTimeout as sleep } from "node:timers/promises";
import { inRoot } from "../../scripts/lib/paths.mjs";

export const countingEntry = inRoot("bench/lib/counting.js");

/** What was counted since the last time it was asked. */
export async function counts(server) {
  // An answer leaves when its rows are durable, and the count is taken with it; what is done behind it comes a little later.
  await sleep(20);
  const answer = await fetch(`${server.base}/counted`);
  return answer.json();
}
