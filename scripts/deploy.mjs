// `npm run deploy`: set-up, then `wrangler deploy`, whose [build] command builds the Worker.
// Arguments go to wrangler: npm run deploy -- --dry-run

import { main, Stop } from "./lib/say.mjs";
import { run } from "./lib/run.mjs";
import { setup } from "./lib/setup.mjs";
import { wranglerCommand } from "./lib/wrangler.mjs";

await main(async () => {
  await setup();
  const [program, args, options] = wranglerCommand(["deploy", ...process.argv.slice(2)]);
  // Its own terminal: wrangler may have to ask which account to use.
  const { code } = await run(program, args, { ...options, stdio: "inherit" });
  if (code !== 0) throw new Stop("wrangler did not deploy: its message is above this line.");
});
