// `npm run build`, and the [build] command of wrangler.toml: set-up, then the Worker into build/ and the pages into build-pages/.
// Options: --dev, --panic-unwind, --features LIST, --out-dir FOLDER.

import { build, buildOptions } from "./lib/build.mjs";
import { main } from "./lib/say.mjs";

await main(() => build(buildOptions(process.argv.slice(2))));
