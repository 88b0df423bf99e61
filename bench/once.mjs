// What is measured once, not in rounds: exact counts, how things grow, the wasm's size.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { inRoot } from "../scripts/lib/paths.mjs";
import { say } from "../scripts/lib/say.mjs";
import { counts } from "./lib/counted.mjs";
import { acquire, Line, release } from "./lib/line.mjs";
import { memory, withFolder } from "./lib/scratch.mjs";
import { perRarer, perVerb } from "./measures/exact.mjs";
import { heldSlots, hold, sources, waiters } from "./measures/growth.mjs";

async function withServer(contender, folder, counted, work) {
  const server = await contender.start({ folder, counted });
  try {
    return await work(server);
  } finally {
    await server.end();
  }
}

/** Counts of each verb by how many slots are held beside it, e.g. `{ 1: { acquire: { rowsWritten: 1, … } } }`. */
export function exact(contender, sizes = [0]) {
  return withFolder((folder) =>
    withServer(contender, folder, true, async (server) => {
      const byHeld = {};
      for (const held of sizes) byHeld[held] = await perVerb(server, `exact-${held}`, held);
      return { byHeld, ...(await perRarer(server, "rarer")) };
    }),
  );
}

/**
 * Each on a server of its own, with its data in memory: ten thousand new files are nothing that a disk does soon.
 * A failure (a limit of the machine, say) is a sentence in place of the figures.
 */
export async function growth(contender, sizes) {
  const grown = { held: {}, waiters: {}, sources: {}, restart: {} };
  const measures = { held: heldSlots, waiters, sources };
  for (const size of sizes) {
    for (const [name, measure] of Object.entries(measures)) {
      say(`  ${contender.name}: ${name} ${size}`);
      grown[name][size] = await attempt(() =>
        withFolder((folder) => withServer(contender, folder, false, (server) => measure(server, "growth", size)), memory()),
      );
    }
    if (contender.survives) grown.restart[size] = await attempt(() => restart(contender, size));
  }
  return grown;
}

/** The first call after a restart, with so many slots held: what loading costs. Time includes the object's, not the process's start. */
function restart(contender, size) {
  return withFolder(async (folder) => {
    const source = await withServer(contender, folder, true, async (server) => {
      const made = await server.source("restart", { limit: Math.min(size + 10, 10_000) });
      await hold(server, made, Math.min(size, 9_990));
      return made;
    });
    return withServer(contender, folder, true, async (server) => {
      const line = await Line.open(server.port);
      await line.send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
      await counts(server);
      const sent = performance.now();
      const { id, at } = await acquire(line, source, 0);
      const { source: counted } = await counts(server);
      await release(line, source, id);
      line.close();
      return { firstCallMs: at - sent, rowsRead: counted.rowsRead };
    });
  }, memory());
}

async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    return { failed: error.message };
  }
}

export function wasmSize() {
  const wasm = readFileSync(inRoot("build", "index_bg.wasm"));
  return { bytes: wasm.length, gzipBytes: gzipSync(wasm, { level: 9 }).length };
}
