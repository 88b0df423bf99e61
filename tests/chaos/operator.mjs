// What is done to a run from outside: kills and restarts, settings that change, keys that are revoked, sources
// that end and are made anew. Each is recorded with the moments between which it took effect.
// Never two changes of one source at a time, since then nobody could tell which settings were in force.

import { setTimeout as sleep } from "node:timers/promises";
import { Stop } from "../../scripts/lib/say.mjs";
import { now } from "./history.mjs";

const PAUSE_MS = 40;
const INSIST_MS = 10_000;

export function operator({ server, recorder }) {
  /** An admin call, repeated until it is answered; a repeat finds what the first one did, if it did. */
  async function admin(method, path, body, { mayEnd = [200, 201] } = {}) {
    const until = now() + INSIST_MS;
    for (;;) {
      const answer = await server.admin(method, path, body).catch(() => null);
      if (mayEnd.includes(answer?.status)) return answer;
      if (now() > until)
        throw new Stop(`${method} ${path} was never answered well: ${answer?.status} ${JSON.stringify(answer?.body)}`);
      await sleep(PAUSE_MS);
    }
  }

  async function put(source, settings, epoch = source.epoch) {
    const entry = recorder.event({
      what: "settings",
      source: source.name,
      epoch,
      settings,
      invokedAt: now(),
      returnedAt: null,
    });
    await admin("PUT", `/pools/${source.name}`, settings);
    entry.returnedAt = now();
  }

  const self = {
    /** Callers learn of a source's key and of its epoch in one moment: a key belongs to one epoch. */
    async create(source, epoch) {
      await put(source, source.settings, epoch);
      const { body } = await admin("POST", `/pools/${source.name}/keys`, {});
      Object.assign(source, { epoch, key: body.accessKey, family: body.keyId });
    },

    /** A key beside the source's own. Null if the source ended meanwhile: nobody knows then whose key it is. */
    async mint(source) {
      const { name, epoch } = source;
      if (source.isEnding) return null;
      const { status, body } = await admin("POST", `/pools/${name}/keys`, {}, { mayEnd: [201, 404] });
      if (status === 404 || source.isEnding || source.epoch !== epoch) return null;
      return { name, epoch, key: body.accessKey, family: body.keyId };
    },

    async revoke({ name, family }) {
      const entry = recorder.event({ what: "revoked", source: name, family, invokedAt: now(), returnedAt: null });
      await admin("DELETE", `/pools/${name}/keys/${family}`, undefined, { mayEnd: [200, 404] });
      entry.returnedAt = now();
    },

    /** Ends a source and makes it anew; who comes then has a key of the new one. */
    async recreate(source) {
      source.isEnding = true;
      const entry = recorder.event({
        what: "ended",
        source: source.name,
        epoch: source.epoch,
        invokedAt: now(),
        returnedAt: null,
      });
      await admin("DELETE", `/pools/${source.name}`, undefined, { mayEnd: [200, 404] });
      entry.returnedAt = now();
      await self.create(source, source.epoch + 1);
      source.isEnding = false;
      recorder.fault("sources ended and made anew");
    },

    /** One change of a source, each kind in its turn so that none is left out of a short run. */
    async flap(source, random) {
      const settings = structuredClone(source.current ?? source.settings);
      const what = source.flap[source.flaps++ % source.flap.length];
      if (what === "recreate") return self.recreate(source);
      if (what === "limit") {
        const was = settings.concurrency.limit;
        settings.concurrency.limit = random.pick([1, 2, 3, 4, 6, 8].filter((limit) => limit !== was));
        recorder.fault(settings.concurrency.limit > was ? "limits raised" : "limits lowered");
      }
      if (what === "queue") {
        settings.queue = { maxDepth: random.pick([0, 2, 10, 40]), timeoutMs: random.pick([300, 2000, 30_000]) };
        recorder.fault("queue bounds changed");
      }
      if (what === "adaptive") {
        settings.concurrency.adaptive = !settings.concurrency.adaptive;
        recorder.fault("adaptive turned on or off");
      }
      if (what === "rpm") {
        // Seldom none: after a while without a gate there are so many grants that it stays shut for the rest.
        settings.rpm.limit = random.chance(0.05)
          ? null
          : random.pick([20, 30, 45, 60].filter((limit) => limit !== settings.rpm.limit));
        recorder.fault("minute limits changed");
      }
      source.current = settings;
      await put(source, settings);
    },

    /** As a crash does it, and back after `downMs`. */
    async kill(downMs) {
      const entry = recorder.event({ what: "down", invokedAt: now(), returnedAt: null });
      await server.kill();
      await sleep(downMs);
      await server.start();
      entry.returnedAt = now();
      recorder.fault("kill -9 and restart");
    },
  };
  return self;
}
