// `npm start`: build, run the Worker under `wrangler dev`, and show how to call it.
// For trying things out; `npm run serve` is the faster one. Leaves no process behind when it ends.

import { localApiHost } from "./lib/api-host.mjs";
import { attend, spawnGroup } from "./lib/attend.mjs";
import { build } from "./lib/build.mjs";
import { demoKey, sayHowToCall, showOneCycle } from "./lib/demo.mjs";
import { adminToken, ensureDevVars } from "./lib/dev-vars.mjs";
import { mustBeFree, parsePort } from "./lib/net.mjs";
import { main, say } from "./lib/say.mjs";
import { showWithoutSlotIds, wranglerDevCommand } from "./lib/wrangler.mjs";

const ANOTHER_PORT = "PORT=8790 npm start";

await main(async () => {
  const port = parsePort(process.env.PORT || "8787", ANOTHER_PORT);
  await mustBeFree(port, ANOTHER_PORT);
  await build();
  ensureDevVars();
  const token = adminToken();

  const wrangler = spawnGroup(...wranglerDevCommand(port, localApiHost(process.env.API_HOST)));
  showWithoutSlotIds(wrangler.stdout);
  const code = await attend(wrangler, `http://127.0.0.1:${port}`, () => introduce(`http://localhost:${port}`, token));
  if (code === null) return;
  say("wrangler dev ended by itself: its message is above this line.");
  process.exitCode = code || 1;
});

async function introduce(base, token) {
  const key = await demoKey(base, token);
  sayHowToCall(base, key);
  await showOneCycle(base, key);
  say(`\nThe admin token is in .dev.vars; with it, ${base}/dashboard shows the same.\nServing ${base} until Ctrl-C.`);
}
