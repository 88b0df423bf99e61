// `npm run setup`: all set-up, when needed. Every other script does it too; this one does only it.

import { main, say } from "./lib/say.mjs";
import { setup } from "./lib/setup.mjs";

await main(async () => {
  await setup();
  say("set-up complete");
});
