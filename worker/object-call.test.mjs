// The call to an object, in every order of events.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AGAIN, FIRST_PAUSE_MS, INTERNAL, MOST_TRIES, PATIENCE_MS, QUIET_MS } from "./agreed.js";
import { Unsettled, begin, callObject, goOn } from "./object-call.js";
import { Clock, quiet } from "./played.mjs";

const URL = "http://source/v1/lock/acquire?request=00ff&key=1";

/** An answer of an object; its body comes in `bodyAfter` ms. */
const says = (status, said = "", bodyAfter = 0) => ({
  status,
  text: () => (bodyAfter ? inTime(bodyAfter).then(() => said) : Promise.resolve(said)),
});
const inTime = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const answers =
  (response, ms = 0) =>
  () => ({ fetch: () => (ms ? inTime(ms).then(() => response) : Promise.resolve(response)) });
const again = (ms = 0) => answers(says(AGAIN), ms);

const overloaded = () => Object.assign(new Error("too many"), { overloaded: true });
const throwsAtOnce =
  (error = new Error("reset")) =>
  () => {
    throw error;
  };
const throwsInFetch =
  (error = new Error("reset")) =>
  () => ({ fetch: () => throwsAtOnce(error)() });
const fails =
  (ms = 0, error = new Error("reset")) =>
  () => ({
    fetch: () => (ms ? inTime(ms) : Promise.resolve()).then(() => Promise.reject(error)),
  });
const silent = () => ({ fetch: () => new Promise(() => {}) });

/** An object that does for each try what `script` says, and for those beyond it what the last of it says. */
function play(t, script, { wait = 0, random = 0.5, ...more } = {}) {
  const clock = new Clock(t);
  const said = quiet(t);
  t.mock.method(Math, "random", () => random);
  const tries = [];
  const namespace = {
    getByName(name) {
      const number = tries.length;
      const tried = { name, at: Date.now() - call.started };
      tries.push(tried);
      const stub = script[Math.min(number, script.length - 1)]();
      return {
        fetch(url) {
          const { searchParams } = new globalThis.URL(url);
          const [left, waited] = ["wait", "waited"].map((name) => Number(searchParams.get(name)));
          Object.assign(tried, { url, left, waited });
          return stub.fetch(url);
        },
      };
    },
  };
  const call = { namespace, source: "demo", url: URL, wait, started: clock.now, carried: false, decisions: 0, ...more };
  return { clock, said, tries, namespace, call };
}

/** What such a call comes to, and when. */
async function outcome(t, script, options) {
  const played = play(t, script, options);
  const came = await played.clock.until(callObject(played.call));
  assert.equal(played.clock.timers, 0, "a timer is left");
  return { ...played, came, took: played.clock.now - played.call.started };
}

const isUnsettled = (came, status, said) => {
  assert.ok(came instanceof Unsettled);
  assert.deepEqual({ ...came }, { status, said });
};

test("an answer is passed on as it is, whatever its status, after one call", async (t) => {
  for (const status of [200, 204, 400, 409, 429, 500, 503, INTERNAL - 1]) {
    await t.test(`${status}`, async (t) => {
      const response = says(status);
      const { came, tries, said } = await outcome(t, [answers(response, 5)], { wait: 700 });
      assert.equal(came, response);
      assert.deepEqual(tries, [{ name: "demo", at: 0, url: `${URL}&wait=700&waited=0`, left: 700, waited: 0 }]);
      assert.deepEqual(said, []);
    });
  }
});

test("an internal status is to be settled, with its body, after one call", async (t) => {
  for (const status of [INTERNAL, 596, 597, 598]) {
    await t.test(`${status}`, async (t) => {
      const { came, tries } = await outcome(t, [answers(says(status, "a policy", 30))]);
      isUnsettled(came, status, "a policy");
      assert.equal(tries.length, 1);
    });
  }
});

test("an object that says again, breaks or can't be had is called again, by a new stub, after a pause", async (t) => {
  const response = says(200);
  for (const [name, event] of Object.entries({
    again: again(),
    breaks: fails(),
    throws: throwsInFetch(),
    "has no stub": throwsAtOnce(),
  })) {
    await t.test(name, async (t) => {
      const { came, tries } = await outcome(t, [event, answers(response)]);
      assert.equal(came, response);
      assert.deepEqual(
        tries.map(({ at }) => at),
        [0, FIRST_PAUSE_MS],
      );
    });
  }
});

test("each failure is logged with source and request, and nothing else of the URL", async (t) => {
  const { said } = await outcome(t, [fails(0, new Error("internal error")), answers(says(200))]);
  assert.deepEqual(said, ["a call to an object failed: Error: internal error (source demo, request 00ff)"]);
});

test("after six failures in a row, of whatever kinds, it is given up", async (t) => {
  const { came, tries } = await outcome(t, [again(), fails(), throwsAtOnce(), again(40), throwsInFetch(), fails(3)]);
  isUnsettled(came, 0, "an object kept failing");
  assert.equal(tries.length, MOST_TRIES);
});

test("the sixth try may still be answered", async (t) => {
  const response = says(200);
  const { came } = await outcome(t, [...Array(MOST_TRIES - 1).fill(again()), answers(response)]);
  assert.equal(came, response);
});

test("pauses double, each from half of itself to one and a half", async (t) => {
  for (const [random, share] of [
    [0, 0.5],
    [0.5, 1],
    [0.75, 1.25],
  ]) {
    await t.test(`${share}`, async (t) => {
      const { tries } = await outcome(t, [again()], { random });
      const pauses = tries.slice(1).map(({ at }, index) => at - tries[index].at);
      assert.deepEqual(
        pauses,
        [1, 2, 4, 8, 16].map((times) => times * share * FIRST_PAUSE_MS),
      );
    });
  }
});

test("an overloaded object is left alone", async (t) => {
  for (const event of [fails(20, overloaded()), throwsInFetch(overloaded()), throwsAtOnce(overloaded())]) {
    await t.test(async (t) => {
      const { came, tries } = await outcome(t, [event, answers(says(200))]);
      isUnsettled(came, 0, "an object is overloaded");
      assert.equal(tries.length, 1);
    });
  }
});

test("an object that doesn't answer is given up after the waiting time and the patience, and not called again", async (t) => {
  for (const wait of [0, 60_000]) {
    await t.test(`${wait}`, async (t) => {
      const { came, tries, took } = await outcome(t, [silent], { wait });
      isUnsettled(came, 0, "an object did not answer");
      assert.deepEqual([tries.length, took], [1, wait + PATIENCE_MS]);
    });
  }
});

test("an answer is taken until the last moment, and changes nothing after it", async (t) => {
  const { came } = await outcome(t, [answers(says(200), PATIENCE_MS - 1)]);
  assert.equal(came.status, 200);
  await t.test("late", async (t) => {
    const { clock, call, tries } = play(t, [answers(says(200), PATIENCE_MS + 1)]);
    const late = await clock.until(callObject(call));
    await clock.pass(60_000);
    isUnsettled(late, 0, "an object did not answer");
    assert.equal(tries.length, 1);
  });
  await t.test("late failure", async (t) => {
    const { clock, call, tries } = play(t, [fails(PATIENCE_MS + 1)]);
    isUnsettled(await clock.until(callObject(call)), 0, "an object did not answer");
    await clock.pass(60_000);
    assert.equal(tries.length, 1);
  });
});

test("what an object says to its Worker must be at its end within the same deadline", async (t) => {
  const { came, took } = await outcome(t, [
    () => ({ fetch: () => inTime(4_000).then(() => ({ status: 598, text: () => new Promise(() => {}) })) }),
  ]);
  isUnsettled(came, 0, "an object did not answer");
  assert.equal(took, PATIENCE_MS);
});

test("an internal answer whose body breaks is a failure like others", async (t) => {
  const response = says(200);
  const breaks = answers({ status: 597, text: () => Promise.reject(new Error("reset")) });
  const { came, tries } = await outcome(t, [breaks, answers(response)]);
  assert.equal(came, response);
  assert.equal(tries.length, 2);
});

test("a caller who waited well is carried over at once, with the time it waited, and its failures are counted anew", async (t) => {
  const soon = [again(), again(), again(), again(), again()];
  const { came, tries, call } = await outcome(t, [...soon, fails(5_000), ...soon, answers(says(200))], {
    wait: 60_000,
    decisions: 3,
  });
  assert.equal(came.status, 200);
  assert.equal(tries.length, 12);
  assert.equal(tries[6].at - tries[5].at, 5_000, "no pause");
  assert.equal(tries[7].at - tries[6].at, FIRST_PAUSE_MS, "the first pause again");
  for (const { at, left, waited } of tries.slice(1)) assert.deepEqual([waited, left], [at, 60_000 - at]);
  assert.equal(call.decisions, 0);
});

test("a wait that broke just before it was quiet for long enough counts as a failure", async (t) => {
  const { tries } = await outcome(t, [fails(QUIET_MS - 1), answers(says(200))], { wait: 60_000 });
  assert.equal(tries[1].at, QUIET_MS - 1 + FIRST_PAUSE_MS);
});

test("who carries over has waited for 1 ms at least: the object must know it again", async (t) => {
  const { tries } = await outcome(t, [answers(says(200))], { wait: 500, carried: true });
  assert.deepEqual([tries[0].waited, tries[0].left], [1, 499]);
});

test("who doesn't queue is never carried over", async (t) => {
  const { tries } = await outcome(t, [again(300)], { wait: 0 });
  assert.ok(
    tries.every(({ left, waited }) => left === 0 && waited === 0),
    JSON.stringify(tries),
  );
});

test("a waiting time that is over is none, and its end isn't waited for twice", async (t) => {
  const { tries, took } = await outcome(t, [fails(2_000), silent], { wait: 1_500 });
  assert.deepEqual([tries[1].at, tries[1].left, tries[1].waited], [2_000, 0, 2_000]);
  assert.equal(took, 2_000 + PATIENCE_MS);
});

test("failures that are slow don't add up", async (t) => {
  for (const [slow, most] of [
    [PATIENCE_MS - 1, 1],
    [6_000, 2],
    [3_000, 4],
  ]) {
    await t.test(`${slow}`, async (t) => {
      const { came, tries } = await outcome(t, [fails(slow)]);
      isUnsettled(came, 0, "an object kept failing");
      assert.equal(tries.length, most);
    });
  }
});

test("whatever happens, in whatever order, a call ends in time, and the object is told the truth of its waiting", async (t) => {
  for (let seed = 1; seed <= 150; seed += 1) {
    await t.test(`${seed}`, async (t) => {
      let state = seed * 2654435761;
      const roll = (below) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
      };
      const wait = [0, 300, 5_000, 60_000][roll(4)];
      const span = () => [0, roll(30), roll(1_500), roll(12_000)][roll(4)];
      const kinds = [
        () => again(span()),
        () => fails(span()),
        () => throwsAtOnce(),
        () => throwsInFetch(),
        () => again(span()),
      ];
      const script = Array.from({ length: 40 }, () => kinds[roll(kinds.length)]());
      if (roll(3) > 0)
        script[roll(12)] = [answers(says(200), span()), silent, answers(says(598), span()), fails(1, overloaded())][
          roll(4)
        ];
      const { clock, tries, call } = play(t, script, { wait, random: roll(100) / 100 });
      await clock.until(callObject(call));
      const took = clock.now - call.started;
      assert.ok(took <= wait + 2 * PATIENCE_MS + 2_000, `${took}`);
      for (const { at, left, waited } of tries.filter(({ url }) => url)) {
        assert.equal(left, Math.max(0, wait - waited));
        assert.equal(waited, at === 0 || wait === 0 ? waited : Math.max(1, at));
        if (at === 0 || wait === 0) assert.ok(waited <= 1);
      }
    });
  }
});

// What Rust calls.

const settleWith = (answer) => {
  const calls = [];
  const settle = (call, status, said) => {
    calls.push([call, status, said]);
    return answer();
  };
  return { calls, settle };
};

test("what begins is told nothing of a plain answer", async (t) => {
  const response = says(200);
  const { clock, namespace, call } = play(t, [answers(response)]);
  const { calls, settle } = settleWith(() => assert.fail());
  assert.equal(await clock.until(begin(namespace, "demo", URL, 0, "request", "context", settle)), response);
  assert.deepEqual(calls, []);
  assert.equal(call.url, URL);
});

test("what isn't plain comes to Rust with the call, and what Rust says is the answer, also later", async (t) => {
  const response = says(401);
  for (const answer of [() => response, () => Promise.resolve(response)]) {
    await t.test(async (t) => {
      const { clock, namespace } = play(t, [answers(says(598, "revoked"))]);
      const { calls, settle } = settleWith(answer);
      assert.equal(await clock.until(begin(namespace, "demo", URL, 700, "request", "context", settle)), response);
      const [[call, status, said]] = calls;
      assert.deepEqual([calls.length, status, said], [1, 598, "revoked"]);
      const { source, url, wait, request, context, decisions } = call;
      assert.deepEqual([source, url, wait, request, context, decisions], ["demo", URL, 700, "request", "context", 0]);
    });
  }
});

test("a Rust that throws or rejects is a 503", async (t) => {
  for (const answer of [throwsAtOnce(), () => Promise.reject(new Error("unreachable"))]) {
    await t.test(async (t) => {
      const { clock, namespace } = play(t, [answers(says(597))]);
      const { settle } = settleWith(answer);
      assert.equal((await clock.until(begin(namespace, "demo", URL, 0, "request", "context", settle))).status, 503);
    });
  }
});

test("a call that is decided anew goes on where it was: the time, the waiting, the count of decisions", async (t) => {
  const response = says(200);
  const { clock, namespace, tries } = play(t, [again(), answers(says(597, "newer"), 400), answers(response)]);
  const other = `${URL}&policy=2`;
  const settle = (call) => inTime(100).then(() => goOn(call, other, () => assert.fail()));
  let kept;
  const first = (call) => settle((kept = call));
  assert.equal(await clock.until(begin(namespace, "demo", URL, 5_000, "request", "context", first)), response);
  assert.equal(kept.decisions, 1);
  assert.equal(tries[2].url, `${other}&wait=${5_000 - 520}&waited=520`);
});
