// `npm run deploy`: builds, then `wrangler deploy`. Its [build] command finds nothing left to do: what
// [assets] names must be there before wrangler starts.
// Arguments go to wrangler: npm run deploy -- --dry-run

import { build } from "./lib/build.mjs";
import { main, Stop } from "./lib/say.mjs";
import { run } from "./lib/run.mjs";
import { wranglerCommand } from "./lib/wrangler.mjs";

await main(async () => {
  await build();
  const [program, args, options] = wranglerCommand(["deploy", ...process.argv.slice(2)]);
  // Its own terminal: wrangler may have to ask which account to use.
  const { code } = await run(program, args, { ...options, stdio: "inherit" });
  if (code !== 0) throw new Stop("wrangler did not deploy: its message is above this line.");
});
