// Builds one page into build-pages/: `vite build --mode dashboard` or `--mode docs`.
// Every file but the page itself gets a name with a hash, since it is served as immutable.

import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const SOURCES = { dashboard: "app", docs: "docs" };
const at = (path) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig(({ mode }) => ({
  root: at(SOURCES[mode]),
  base: `/${mode}/`,
  publicDir: false,
  logLevel: "warn",
  define: { "process.env.NODE_ENV": '"production"' },
  build: {
    outDir: at(`../build-pages/${mode}`),
    emptyOutDir: true,
    // Inlined files would be data: URLs, which the dashboard's policy does not allow.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1000,
  },
}));
