// The checker can fail: for each promise a history that breaks it, and beside it one that is as close but keeps it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { check } from "./check/index.mjs";
import { story } from "./story.mjs";

const OVER = "never more slots held than the limit";
const ORDER = "nobody is overtaken";
const IDLE = "no slot stays free while someone waits";
const MINUTE = "no minute with more grants than its limit";
const ANSWERS = "no answer is lost, late or wrong";
const SLOTS = "a slot is one attempt's until its lease ends";
const REST = "in the end nothing is held and nobody waits";

/** The promises that a story breaks. */
const broken = ({ history }) =>
  check(history)
    .filter(({ problems }) => problems.length > 0)
    .map(({ promise }) => promise);
const breaks = (promise, told, sentence) => {
  const { problems } = check(told.history).find((result) => result.promise === promise);
  assert.ok(problems.length > 0, `not noticed: ${promise}`);
  assert.match(problems[0].sentence, sentence);
};
const keeps = (told) => assert.deepEqual(broken(told), []);

test("two slots at once under a limit of one", () => {
  breaks(OVER, story().grant("A", 0).grant("B", 100), /2 slots .* at most 1/);
  keeps(story().grant("A", 0).release("A", 99).grant("B", 100));
});

test("a slot granted while another one's renewal still holds", () => {
  breaks(OVER, story().grant("A", 0).renew("A", 900).grant("B", 1500), /2 slots/);
  keeps(story().grant("A", 0).grant("B", 1500));
});

test("a lowered limit takes no slot away, but grants none either", () => {
  const lowered = () => story({ limit: 2 }).grant("A", 0).grant("B", 10).settings({ limit: 1 }, 100);
  keeps(lowered());
  breaks(OVER, lowered().release("B", 200).grant("C", 300), /2 slots .* at most 1/);
  keeps(lowered().release("B", 200).release("A", 250).grant("C", 300));
});

test("a grant that is given again was made under the limit of its first call", () => {
  const lost = { attempt: "job", end: "cut", status: undefined };
  keeps(
    story({ limit: 2 })
      .grant("A", 0)
      .acquire(10, 20, lost)
      .settings({ limit: 1 }, 100)
      .grant("B", 200, 11, { attempt: "job", replayed: true, back: 203 }),
  );
});

test("while a change is on its way, either limit may be in force", () => {
  keeps(story().grant("A", 0).settings({ limit: 2 }, 100).grant("B", 101));
  breaks(OVER, story().settings({ limit: 2 }, 100).settings({ limit: 1 }, 200).grant("A", 300).grant("B", 310), /at most 1/);
});

test("a learned limit goes up to its upper bound and no further", () => {
  const learned = (told) => told.settings({ limit: 1, max: 2, adaptive: true }, 10).grant("A", 100).grant("B", 110);
  keeps(learned(story()));
  breaks(OVER, learned(story()).grant("C", 120), /3 slots .* at most 2/);
});

test("a waiter is overtaken by one who called later", () => {
  const queue = (first, second) =>
    story().grant("A", 0).grant("B", 100, first).grant("C", 400, second).release("A", 500).release("B", 540).release("C", 600);
  breaks(ORDER, queue(550, 502), /called 300 ms after/);
  keeps(queue(502, 545));
});

test("on a machine that was slow then, a call without a body may come before an earlier one with one", () => {
  const failFast = () =>
    story()
      .grant("A", 0)
      .grant("B", 100, 550)
      .grant("C", 400, 502, { waitMs: 0 })
      .release("A", 500)
      .release("B", 560)
      .release("C", 545);
  breaks(ORDER, failFast(), /called 300 ms after/);
  keeps(failFast().acquire(300, 480, { waitMs: 0 }));
});

test("a waiter who timed out is overtaken by one who called later, unless that was after its time", () => {
  const timedOut = (granted) =>
    story()
      .grant("A", 0)
      .acquire(100, 800, { waitMs: 700, status: 504, headers: { "x-swarmvia-queued-ms": "700" } })
      .grant("B", 400, granted)
      .release("A", granted - 1)
      .release("B", granted + 10);
  breaks(ORDER, timedOut(502), /called 300 ms after/);
  keeps(timedOut(802));
});

test("a slot that stays free for over a second while someone waits", () => {
  const released = (granted) => story().grant("A", 0).grant("B", 50, granted).release("A", 100);
  breaks(IDLE, released(1700), /waited although a slot was free/);
  keeps(released(103));
});

test("a vanished holder's slot is had late", () => {
  breaks(IDLE, story().grant("A", 0).grant("B", 50, 2400), /waited although/);
  keeps(story().grant("A", 0).grant("B", 50, 1100));
  // Down for a part of it: the second counts from when it is back.
  keeps(story().grant("A", 0).down(900, 2200).grant("B", 2250, 2400));
});

test("more grants in a minute than its limit", () => {
  const gate = (moments) => {
    const told = story({ limit: 5 }).settings({ limit: 5 }, 5, { rpm: { limit: 2 } });
    moments.forEach((at, i) => told.grant(`S${i}`, at).release(`S${i}`, at + 10));
    return told;
  };
  breaks(MINUTE, gate([100, 200, 60_099]), /3 grants in 60 s, where 2/);
  keeps(gate([100, 200, 60_100]));
  const lost = { attempt: "job", replayed: true, back: 350 };
  breaks(MINUTE, gate([100, 200]).grant("L", 320, 300, lost), /3 grants/);
});

test("an answer that never came, or came late, or was lost while the server was up", () => {
  const lost = (fields) => story().acquire(0, 300, { status: undefined, ...fields });
  breaks(ANSWERS, lost({ end: "hung" }), /never answered/);
  breaks(ANSWERS, lost({ end: "broken" }), /while the server was up/);
  keeps(lost({ end: "broken" }).down(290, 900));
  keeps(lost({ end: "cut" }));
  breaks(ANSWERS, story().acquire(0, 10_500, { status: 504 }), /5500 ms late/);
  keeps(story().down(-10, 3000).acquire(0, 10_500, { status: 504 }));
  keeps(story().acquire(0, 5050, { status: 504 }));
});

test("a status that the contract does not know for that call", () => {
  breaks(ANSWERS, story().acquire(0, 10, { status: 500 }), /knows no such answer/);
  breaks(ANSWERS, story().acquire(0, 10, { waitMs: 0, status: 504 }), /did not wait/);
  breaks(ANSWERS, story().renew("A", 10, 400), /knows no such answer/);
});

test("a key counts exactly as long as it is alive", () => {
  breaks(ANSWERS, story().acquire(0, 10, { status: 401 }), /was alive/);
  breaks(ANSWERS, story().event("revoked", 0, 10, { family: "f1" }).grant("A", 20), /was dead/);
  breaks(ANSWERS, story().event("ended", 0, 10).acquire(20, 30), /was dead/);
  breaks(
    ANSWERS,
    story().event("revoked", 100, 110, { family: "f1" }).acquire(0, 6000, { status: 504, waitMs: 6000 }),
    /died while it waited/,
  );
  keeps(story().event("revoked", 5, 15, { family: "f1" }).acquire(0, 20, { status: 401 }));
  breaks(ANSWERS, story().acquire(0, 10, { family: null }), /garbage/);
});

test("one slot for two attempts, or two for one", () => {
  breaks(SLOTS, story({ limit: 3 }).grant("A", 0).grant("A", 100), /two attempts/);
  breaks(
    SLOTS,
    story({ limit: 3 }).grant("A", 0, 1, { attempt: "job" }).grant("B", 100, 101, { attempt: "job" }),
    /second slot while it held its first/,
  );
  keeps(story().grant("A", 0, 1, { attempt: "job" }).grant("A", 100, 1, { attempt: "job", replayed: true, back: 103 }));
  breaks(
    SLOTS,
    story({ limit: 3 }).grant("A", 0, 1, { attempt: "job" }).grant("A", 100, 101, { attempt: "job" }),
    /granted twice/,
  );
});

test("a slot that is freed twice, by another source, or not at all", () => {
  breaks(SLOTS, story().grant("A", 0).release("A", 10).release("A", 20), /freed twice/);
  keeps(story().grant("A", 0).release("A", 10).release("A", 20, false));
  breaks(SLOTS, story().release("Z", 10), /of another source/);
  breaks(SLOTS, story().grant("A", 0).release("A", 10, false), /as if it were gone/);
  keeps(story().grant("A", 0).release("A", 1100, false));
});

test("a renewal that is refused too early, granted too late, or goes back", () => {
  breaks(SLOTS, story().grant("A", 0).renew("A", 500, 404), /before its deadline/);
  keeps(story().grant("A", 0).renew("A", 1100, 404));
  breaks(SLOTS, story().grant("A", 0).renew("A", 1300), /revived/);
  breaks(SLOTS, story().grant("A", 0).renew("A", 500, 200, 900), /shortened/);
  breaks(SLOTS, story().grant("A", 0).release("A", 10).renew("A", 20), /released slot was renewed/);
  keeps(story().grant("A", 0).renew("A", 500).renew("A", 1400).renew("A", 2500, 404));
});

test("something that is left in the end", () => {
  breaks(REST, story().end({ inUse: 1, queueDepth: 0 }), /1 slots are held/);
  breaks(REST, story().end({ inUse: 0, queueDepth: 2 }), /2 wait/);
  keeps(story().end({ inUse: 0, queueDepth: 0 }));
});
