// The bare JavaScript hop, on bare workerd.

import { join } from "node:path";
import { freePort } from "../../../scripts/lib/net.mjs";
import { inRoot } from "../../../scripts/lib/paths.mjs";
import { lockSource } from "../../lib/calls.mjs";
import { server } from "../../lib/server.mjs";
import { bundle, startWorker } from "../../lib/worker.mjs";

export const hop = {
  name: "hop",
  title: "bare hop",
  about: "a Worker that asks an object, in plain JavaScript: an empty answer, no storage. It is sent the same requests, and is the limit on this platform",
  /** It has no slots, so only speed can be measured. */
  locks: false,
  missing: () => null,

  async start({ folder }) {
    await bundle(inRoot("bench/contenders/hop/index.js"), join(folder, "modules", "index.js"));
    const port = await freePort();
    const group = await startWorker({ folder, port, withStorage: false });
    return server({ group, port, source: async (name) => lockSource(name, { idField: null }) });
  },
};
