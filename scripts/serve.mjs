// `npm run serve -- --port 8788 --data .data/`: build, then the Worker on a bare workerd.
// Prints `workerd pid N` and, once it answers, `ready http://127.0.0.1:PORT`.
// Variables come from the environment, else from .dev.vars. Leaves no process behind when it ends.

import { attend } from "./lib/attend.mjs";
import { build } from "./lib/build.mjs";
import { ensureDevVars, readDevVars } from "./lib/dev-vars.mjs";
import { mustBeFree, parsePort } from "./lib/net.mjs";
import { main, say, Stop } from "./lib/say.mjs";
import { launch } from "./lib/serve.mjs";

const ANOTHER_PORT = "npm run serve -- --port 8790";

await main(async () => {
  const options = readOptions(process.argv.slice(2));
  await mustBeFree(options.port, ANOTHER_PORT);
  await build();
  if (!process.env.ADMIN_TOKEN || !process.env.SIGNING_KEYS) ensureDevVars();

  const env = { ...readDevVars(), ...process.env };
  if ((env.ADMIN_TOKEN ?? "").split(",").some((token) => token.trim().length < 32)) {
    say("ADMIN_TOKEN must be 32 characters or more: until then control routes answer 503");
  }
  const workerd = launch({ ...options, env });
  for (const name of ["ADMIN_TOKEN", "SIGNING_KEYS"]) {
    say(`${name} comes from ${process.env[name] === undefined ? ".dev.vars" : "the environment"}`);
  }
  say(`workerd pid ${workerd.pid}`);
  const code = await attend(workerd, workerd.base, () => say(`ready ${workerd.base}`));
  if (code === null) return;
  say(`workerd ended by itself with code ${code}.`);
  process.exitCode = code || 1;
});

function readOptions(argv) {
  const options = { port: 8788, data: ".data" };
  const rest = [...argv];
  while (rest.length > 0) {
    const flag = rest.shift();
    if (flag === "--port") options.port = parsePort(rest.shift(), ANOTHER_PORT);
    else if (flag === "--data" && rest.length > 0) options.data = rest.shift();
    else if (flag === "--allow-private-network") options.allowPrivateNetwork = true;
    else throw new Stop(`Unknown option ${flag}: there are --port, --data and --allow-private-network.`);
  }
  return options;
}
