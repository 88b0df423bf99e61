// The checker: a history in, every promise with what breaks it out.
// Pure, and knows nothing of how a history came about; check.test.mjs shows that each promise can be broken.

import { noAnswerLost } from "./answers.mjs";
import { facts } from "./facts.mjs";
import { noneIdle } from "./idle.mjs";
import { minuteKept } from "./minute.mjs";
import { inOrder } from "./order.mjs";
import { neverOver } from "./over.mjs";
import { nothingLeft } from "./rest.mjs";
import { slotsHold } from "./slots.mjs";

const PROMISES = {
  "never more slots held than the limit": neverOver,
  "nobody is overtaken": inOrder,
  "no slot stays free while someone waits": noneIdle,
  "no minute with more grants than its limit": minuteKept,
  "no answer is lost, late or wrong": noAnswerLost,
  "a slot is one attempt's until its lease ends": slotsHold,
  "in the end nothing is held and nobody waits": nothingLeft,
};

/** `[{ promise, looked, problems: [{ sentence, calls }], figures }]`. */
export function check(history) {
  const known = facts(history);
  return Object.entries(PROMISES).map(([promise, keeps]) => ({ promise, ...keeps(known) }));
}
