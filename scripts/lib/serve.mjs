// Runs the built Worker on a bare workerd: no dev server in front, objects on disk.
// Never builds, and never puts a secret on the command line or into a file.
//
// A test can start, kill and restart it:
//   const server = await startServe({ port: await freePort(), data, env });
//   process.kill(server.pid, "SIGKILL"); await server.exited;

import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { localApiHost } from "./api-host.mjs";
import { spawnGroup } from "./attend.mjs";
import { untilHealthy } from "./net.mjs";
import { PAGES, SITES } from "./pages.mjs";
import { inRoot, workerdBinary } from "./paths.mjs";
import { ask } from "./run.mjs";
import { Stop } from "./say.mjs";
import { VARIABLES, workerdConfig } from "./workerd-config.mjs";

const STOP_GRACE_MS = 3000; // workerd waits for open requests, and a queued acquire is one.

/**
 * Starts workerd on 127.0.0.1:`port` and returns at once.
 *
 * - `data`: folder of the objects; what is in it survives restarts, kill -9 included
 * - `env`: values for VARIABLES; API_HOST gets localhost and 127.0.0.1 added
 * - `outDir`: the build to run
 * - `allowPrivateNetwork`: lets the Worker fetch from private addresses (key sets of a local issuer)
 * - `output`: where workerd's messages go, "inherit" or "ignore"
 *
 * The answer: `base` URL, `pid`, `exited` (promise of the exit code), `end()`.
 */
export function launch({ port, data, env, outDir = "build", allowPrivateNetwork = false, output = "inherit" }) {
  const bound = {
    SOURCE_DOMAIN: "swarmvia.cloud",
    ...Object.fromEntries(VARIABLES.filter((name) => env[name]).map((name) => [name, env[name]])),
    API_HOST: localApiHost(env.API_HOST),
  };
  const folder = resolve(data);
  const config = join(folder, "workerd.capnp");
  mustBeUnused(folder, config);
  copyModules(folder, outDir);
  const [objects, pages] = [makeFolder(folder, "objects"), copyPages(folder)];
  writeFileSync(config, workerdConfig({ port, objects, pages, names: Object.keys(bound), allowPrivateNetwork }));

  const group = spawnGroup(workerdBinary(), ["serve", config], { env: bound, stdio: ["ignore", output, output] });
  writeFileSync(pidFile(folder), String(group.pid));
  return { ...group, base: `http://127.0.0.1:${port}`, end: () => group.end(STOP_GRACE_MS) };
}

/** Like `launch`, but resolves once GET /healthz answers 200. */
export async function startServe(options) {
  const server = launch(options);
  if (await untilHealthy(server.base, server.exited)) return server;
  throw new Stop(`workerd ended with code ${await server.exited} before it was ready.`);
}

/** The modules are copied, so that a rebuild does not change what a running server was started from. */
function copyModules(folder, outDir) {
  if (!existsSync(inRoot(outDir, "index.js"))) throw new Stop(`${outDir}/index.js is missing: run "npm run build" first.`);
  const modules = makeFolder(folder, "modules");
  for (const file of ["index.js", "index_bg.wasm"]) copyFileSync(inRoot(outDir, file), join(modules, file));
}

/** Copied for the same reason. Without any, a server has no pages, and is otherwise as good. */
function copyPages(folder) {
  const pages = makeFolder(folder, "pages");
  for (const site of SITES) {
    rmSync(join(pages, site), { recursive: true, force: true });
    if (existsSync(inRoot(PAGES, site))) cpSync(inRoot(PAGES, site), join(pages, site), { recursive: true });
  }
  return pages;
}

function makeFolder(...parts) {
  const folder = join(...parts);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

const pidFile = (folder) => join(folder, "workerd.pid");

/** Two servers on one folder would each grant the same slots. workerd itself does not prevent it. */
function mustBeUnused(folder, config) {
  const pid = existsSync(pidFile(folder)) ? readFileSync(pidFile(folder), "utf8") : "";
  if (pid && commandLine(pid).includes(config)) {
    throw new Stop(`${folder} is in use by another server (workerd pid ${pid}): stop it or choose another --data folder.`);
  }
}

/** The command line of a process, or nothing; it tells our workerd from a later process of the same pid. */
function commandLine(pid) {
  const file = `/proc/${pid}/cmdline`;
  if (process.platform !== "linux") return ask("ps", ["-o", "args=", "-p", pid]) ?? "";
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}
