// The configuration of a bare workerd: the same Worker as wrangler.toml describes, objects on disk.
// Holds no secret: every variable is read from workerd's environment by name.

import { readFileSync } from "node:fs";
import { inRoot } from "./paths.mjs";

/** The variables a run may set; those that are not set are not bound. */
export const VARIABLES = ["API_HOST", "SOURCE_DOMAIN", "ADMIN_TOKEN", "SIGNING_KEYS", "TRUST_CF_CONNECTING_IP", "LOG_SHARE"];

/**
 * Cap'n Proto text, for a file beside a folder `modules/`. `objects` is the folder of the objects,
 * `pages` that of the pages, `names` are the variables to bind. The two uniqueKeys name the folders of the objects and enter
 * their ids: a change loses everything stored.
 */
export function workerdConfig({ port, objects, pages, names, allowPrivateNetwork }) {
  const { date, flags } = compatibility();
  // "local" is this machine: a key set may be served here. See RUNS_AS in src/edge/config.rs.
  const networks = allowPrivateNetwork ? `"public", "local", "private"` : `"public", "local"`;
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "objects", disk = (path = ${JSON.stringify(objects)}, writable = true)),
    (name = "assets", disk = ${JSON.stringify(pages)}),
    (name = "internet", network = (allow = [${networks}], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  compatibilityDate = "${date}",
  compatibilityFlags = ${flags},
  modules = [
    (name = "index.js", esModule = embed "modules/index.js"),
    (name = "index_bg.wasm", wasm = embed "modules/index_bg.wasm"),
  ],
  durableObjectNamespaces = [
    (className = "Source", uniqueKey = "swarmvia-locks-source", enableSql = true),
    (className = "Directory", uniqueKey = "swarmvia-locks-directory", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "objects"),
  bindings = [
    (name = "SOURCES", durableObjectNamespace = "Source"),
    (name = "DIRECTORY", durableObjectNamespace = "Directory"),
    (name = "ASSETS", service = "assets"),
    (name = "RUNS_AS", text = "serve"),
${names.map((name) => `    (name = "${name}", fromEnvironment = "${name}"),\n`).join("")}  ],
);
`;
}

/** From wrangler.toml, so that there is one place to change them. */
export function compatibility() {
  const toml = readFileSync(inRoot("wrangler.toml"), "utf8");
  return {
    date: toml.match(/^compatibility_date = "([^"]+)"/m)[1],
    flags: toml.match(/^compatibility_flags = (\[[^\]]*\])/m)[1],
  };
}
