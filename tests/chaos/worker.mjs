// A caller: acquire, renew and release, each recorded from the moment it begins.
// Never decides what to do next, and never reads the history.

import { randomUUID } from "node:crypto";
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { send } from "./line.mjs";
import { now } from "./history.mjs";

/** A call that may be repeated is repeated for so long: a restart takes less. */
const INSIST_MS = 8_000;
const PAUSE_MS = 40;

/** `source`: `{ name, key, family, epoch }`, which change when it is made anew. */
export function worker({ port, recorder, source, name }) {
  const agent = new Agent({ keepAlive: true });

  /** One call. `as` is whose key and path are used, if they are not the source's own. */
  function call(fields, path, { body, headers = {}, waitMs, cut, as = source } = {}) {
    const { key, family, epoch } = as;
    const entry = recorder.call({ source: as.name, epoch, family, caller: name, ...fields });
    return send(entry, {
      port,
      agent,
      path: `/pools/${as.name}/lock/${path}`,
      headers: { "X-Swarmvia-Key": key, ...headers },
      body,
      waitMs,
      cut,
    });
  }

  const self = {
    source,
    agent,
    /** A name for an attempt; `acquire` with the same one is the same attempt. */
    attempt: () => randomUUID(),
    // `waitMs` is recorded as asked for; the source may clamp it, which only makes the answer come earlier.
    acquire: ({ waitMs = 0, attempt = null, cut, as } = {}) =>
      call({ kind: "acquire", waitMs, attempt }, "acquire", {
        body: waitMs > 0 ? { waitMs } : undefined,
        headers: attempt ? { "Idempotency-Key": attempt } : {},
        waitMs,
        cut,
        as,
      }),
    renew: (slot, { as } = {}) =>
      call({ kind: "renew", slotId: slot.slotId, termMs: slot.termMs }, `${slot.slotId}/renew`, { as }),
    release: (slot, { as, report = { status: 200 } } = {}) =>
      call({ kind: "release", slotId: slot.slotId }, `${slot.slotId}/release`, { body: report, as }),

    /** Repeats a call until it is answered by more than "come back": as the README tells callers to. */
    async insist(make) {
      const until = now() + INSIST_MS;
      for (;;) {
        const answer = await make();
        if ((answer.end === "answered" && answer.status !== 503) || now() > until) return answer;
        await sleep(PAUSE_MS);
      }
    },

    /** A slot, or null: the way most callers get one. A lost answer is asked for again under the same name. */
    async slot({ waitMs = 0, attempt = null, as } = {}) {
      const first = await self.acquire({ waitMs, attempt, as });
      const answer = first.end === "broken" && attempt ? await self.again({ waitMs, attempt, as }) : first;
      return isGrant(answer) ? answer.body : null;
    },
    again: async (options) => {
      recorder.fault("repeats after a lost answer");
      const answer = await self.insist(() => self.acquire(options));
      if (answer.headers?.["x-swarmvia-replayed"]) recorder.fault("lost grants given again");
      return answer;
    },
    giveBack: (slot, options) => self.insist(() => self.release(slot, options)),
    close: () => agent.destroy(),
  };
  return self;
}

export const isGrant = (call) => call.end === "answered" && call.kind === "acquire" && call.status === 200;
