// Tests that run inside workerd, against the built Worker: tests/workerd/*.test.ts.
// They don't build it (`npm test` did) and need no network. Storage is separate for each test file.

import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    cloudflareTest({
      main: "./build/index.js",
      wrangler: { configPath: "./wrangler.toml" },
      miniflare: {
        cf: false,
        // Made up, and for tests only. They win over .dev.vars.
        bindings: {
          API_HOST: "api.swarmvia.cloud,localhost",
          SOURCE_DOMAIN: "swarmvia.cloud",
          ADMIN_TOKEN: "test-admin-token-test-admin-token-0",
          // A key set may be served by this machine.
          RUNS_AS: "start",
          SIGNING_KEYS: "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        },
      },
    }),
  ],
  test: {
    globalSetup: "./tests/workerd/key-server.mjs",
    include: ["tests/workerd/**/*.test.ts"],
    testTimeout: 20_000,
    // Each runs a workerd of its own.
    maxWorkers: 2,
  },
});
