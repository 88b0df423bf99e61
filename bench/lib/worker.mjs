// A small Worker with one class of objects, on the same workerd and with the same flags as ours.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawnGroup } from "../../scripts/lib/attend.mjs";
import { compatibility } from "../../scripts/lib/workerd-config.mjs";
import { localBin, workerdBinary } from "../../scripts/lib/paths.mjs";
import { must } from "../../scripts/lib/run.mjs";
import { untilAnswers } from "./server.mjs";

/** Bundles `entry`; with `alias`, what it imports under that name. */
export function bundle(entry, out, alias = {}) {
  const args = ["--bundle", "--format=esm", "--log-level=error", "--external:cloudflare:workers", "--external:./index_bg.wasm"];
  for (const [name, file] of Object.entries(alias)) args.push(`--alias:${name}=${file}`);
  return must("esbuild failed: its message is above this line.", localBin("esbuild"), [...args, entry, `--outfile=${out}`]);
}

/** Starts the Worker `folder/modules/index.js`, whose class of objects is `Source`. */
export async function startWorker({ folder, port, withStorage }) {
  const objects = join(folder, "objects");
  mkdirSync(objects, { recursive: true, mode: 0o700 });
  const config = join(folder, "workerd.capnp");
  writeFileSync(config, workerText({ port, objects, withStorage }));
  const group = spawnGroup(workerdBinary(), ["serve", config], { stdio: ["ignore", "ignore", "inherit"] });
  await untilAnswers(group, port, "/");
  return group;
}

function workerText({ port, objects, withStorage }) {
  const { date, flags } = compatibility();
  const storage = withStorage
    ? `durableObjectStorage = (localDisk = "objects"),`
    : `durableObjectStorage = (inMemory = void),`;
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "objects", disk = (path = ${JSON.stringify(objects)}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  compatibilityDate = "${date}",
  compatibilityFlags = ${flags},
  modules = [(name = "index.js", esModule = embed "modules/index.js")],
  durableObjectNamespaces = [(className = "Source", uniqueKey = "bench-source"${withStorage ? ", enableSql = true" : ""})],
  ${storage}
  bindings = [(name = "SOURCES", durableObjectNamespace = "Source")],
);
`;
}


