// The ways of callers: what each does with a slot, the good ones and the bad ones.
// Never waits for another caller, and counts a fault only once it has happened.

import { setTimeout as sleep } from "node:timers/promises";
import { now } from "./history.mjs";
import { isGrant } from "./worker.mjs";

const GARBAGE = ["", "sv_at_", "sv_at_a.b.c", "sv_rt_x.y.z", "Bearer", "\u00ff\u00fe", "sv_at_" + "A".repeat(1100)];

/** Each takes `{ worker, random, recorder, others, held, operator }`. */
export const WAYS = {
  async honest(scene) {
    const slot = await acquired(scene);
    if (!slot) return;
    await sleep(scene.random.between(5, 60));
    await scene.worker.giveBack(slot, { report: reportOf(scene) });
  },

  /** Holds for longer than a term, as a long upstream call does. */
  async renewing(scene) {
    const slot = await acquired(scene);
    if (!slot) return;
    for (let renewals = scene.random.between(2, 8); renewals > 0; renewals -= 1) {
      await sleep(slot.renewIntervalMs);
      const { status } = await scene.worker.renew(slot);
      if (status === 404 || status === 409) break;
    }
    await scene.worker.giveBack(slot);
  },

  /** Holds for most of a term, whatever becomes of the server, and then expects its slot to be there. */
  async keep(scene) {
    const slot = await acquired(scene);
    if (!slot) return;
    const kills = scene.recorder.faults["kill -9 and restart"];
    await sleep((slot.termMs * scene.random.between(20, 70)) / 100);
    await scene.worker.insist(() => scene.worker.renew(slot));
    if (scene.recorder.faults["kill -9 and restart"] !== kills) scene.recorder.fault("slots kept through a restart");
    await sleep(scene.random.between(0, 300));
    await scene.worker.giveBack(slot);
  },

  async vanish(scene) {
    if (await acquired(scene)) scene.recorder.fault("holders who vanished");
  },

  async lateRenew(scene) {
    const slot = await acquired(scene);
    if (!slot) return;
    await oversleep(scene, slot);
    const { end } = await scene.worker.renew(slot);
    if (end === "answered") scene.recorder.fault("renewals after the lease");
  },

  async lateRelease(scene) {
    const slot = await acquired(scene);
    if (!slot) return;
    await oversleep(scene, slot);
    const { end } = await scene.worker.release(slot);
    if (end === "answered") scene.recorder.fault("releases after the lease");
  },

  async releaseTwice(scene) {
    const slot = await acquired(scene);
    if (!slot) return;
    await sleep(scene.random.between(0, 30));
    const both = scene.random.chance(0.5)
      ? await Promise.all([scene.worker.release(slot), scene.worker.release(slot)])
      : [await scene.worker.giveBack(slot), await scene.worker.release(slot)];
    if (both.every((call) => call.end === "answered")) scene.recorder.fault("slots released twice");
  },

  /** Another source's key and path cannot free a slot; the holder goes on. */
  async elsewhere(scene) {
    const slot = await acquired(scene);
    if (!slot) return;
    const other = scene.random.pick(scene.others);
    const { end } = await scene.worker.release(slot, { as: other });
    if (end === "answered") scene.recorder.fault("releases at another source");
    await scene.worker.renew(slot);
    await scene.worker.giveBack(slot);
  },

  /** Any key of the source may release a slot: a colleague does, while its holder is still at work. */
  async taken(scene) {
    const slot = scene.held.find((one) => one.leaseDeadline - now() > 100);
    if (!slot) return WAYS.honest(scene);
    const { end } = await scene.worker.release(slot);
    if (end === "answered") scene.recorder.fault("releases of someone else's slot");
  },

  async garbage(scene) {
    const as = { ...scene.worker.source, key: scene.random.pick(GARBAGE), family: null };
    const slot = scene.held[0] ?? { slotId: "AAAAAHZ1n3e3xWLnkzD1kDrmJIg", termMs: 1000 };
    const calls = [
      scene.worker.acquire({ waitMs: 500, as }),
      scene.worker.renew(slot, { as }),
      scene.worker.release(slot, { as }),
    ];
    const answers = await Promise.all(calls);
    if (answers.some((call) => call.end === "answered")) scene.recorder.fault("calls with a garbage key");
  },

  /** The connection is reset as the grant's answer begins; the caller asks for it again. */
  async lostAnswer(scene) {
    const options = { waitMs: scene.random.between(0, 3000), attempt: scene.worker.attempt() };
    const lost = await scene.worker.acquire({ ...options, cut: { atAnswer: true } });
    if (lost.end === "cut") scene.recorder.fault("connections reset mid-answer");
    await sleep(scene.random.between(0, 100));
    const answer = await scene.worker.again(options);
    if (!isGrant(answer)) return;
    await sleep(scene.random.between(0, 40));
    await scene.worker.giveBack(answer.body);
  },

  /** Leaves the queue by a reset; some come back to their place under the same name. */
  async leave(scene) {
    const options = { waitMs: 3000, attempt: scene.worker.attempt() };
    const left = await scene.worker.acquire({ ...options, cut: { afterMs: scene.random.between(1, 250) } });
    if (left.end === "cut") scene.recorder.fault("connections reset mid-wait");
    if (!scene.random.chance(0.5)) return;
    const slot = isGrant(left) ? left.body : await scene.worker.slot(options);
    if (slot) await scene.worker.giveBack(slot);
  },

  /** Two calls of one attempt at once: one place, one slot. */
  async share(scene) {
    const options = { waitMs: 3000, attempt: scene.worker.attempt() };
    const answers = await Promise.all([scene.worker.acquire(options), scene.worker.acquire(options)]);
    const granted = answers.filter(isGrant);
    if (granted.length === 2) scene.recorder.fault("attempts made twice at once");
    await sleep(scene.random.between(0, 30));
    if (granted.length > 0) await scene.worker.giveBack(granted[0].body);
  },

  /** A key of its own, which the operator revokes while its caller waits. */
  async revoked(scene) {
    const as = await scene.operator.mint(scene.worker.source);
    if (!as) return;
    const waiting = scene.worker.acquire({ waitMs: 4000, as });
    await sleep(scene.random.between(10, 250));
    await scene.operator.revoke(as);
    const answer = await waiting;
    if (answer.status === 401) scene.recorder.fault("keys revoked while their callers waited");
    if (isGrant(answer)) await scene.worker.giveBack(answer.body);
    const after = await scene.worker.acquire({ waitMs: 500, as });
    if (after.end === "answered") scene.recorder.fault("calls with a revoked key");
  },
};

/** A slot as a caller usually gets it. What is held now is known to colleagues, who may release it. */
async function acquired({ worker, random, held }) {
  const waitMs = random.chance(0.15) ? 0 : random.between(300, 5000);
  const slot = await worker.slot({ waitMs, attempt: random.chance(0.5) ? worker.attempt() : null });
  if (slot) {
    held.unshift(slot);
    held.splice(4);
  }
  return slot;
}

/** What came of the call: now and then the upstream throttled, from which a source that learns its limit learns. */
const reportOf = ({ random }) => (random.chance(0.1) ? { status: 429, throttled: 1 } : { status: 200 });

/** Past the lease, by so much that nobody's clock matters. */
const oversleep = ({ random }, slot) => sleep(Math.max(0, slot.leaseDeadline - now()) + random.between(150, 500));
