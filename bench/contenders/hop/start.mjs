// The two hops in bare JavaScript, on bare workerd.

import { join } from "node:path";
import { freePort } from "../../../scripts/lib/net.mjs";
import { inRoot } from "../../../scripts/lib/paths.mjs";
import { lockSource } from "../../lib/calls.mjs";
import { server } from "../../lib/server.mjs";
import { bundle, startWorker } from "../../lib/worker.mjs";

const contender = (name, title, about, script) => ({
  name,
  title,
  about,
  /** It has no slots, so only speed can be measured. */
  locks: false,
  missing: () => null,

  async start({ folder }) {
    await bundle(inRoot("bench/contenders/hop", script), join(folder, "modules", "index.js"));
    const port = await freePort();
    const group = await startWorker({ folder, port, withStorage: false });
    return server({ group, port, source: async (source) => lockSource(source, { idField: null }) });
  },
});

export const hop = contender(
  "hop",
  "bare hop",
  "a Worker that hands what it is sent on to an object, in plain JavaScript, and gets an empty answer; no storage: the limit for whoever has to tell an object what callers send",
  "index.js",
);

export const emptyHop = contender(
  "empty-hop",
  "empty hop",
  "the same, but the object is told nothing and no body is touched: what the platform takes for asking an object at all",
  "empty.js",
);
