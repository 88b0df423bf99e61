// What the tests know of the Worker: its bindings (wrangler.toml, vitest.config.mjs) and its exports.

declare namespace Cloudflare {
  interface Env {
    SOURCES: DurableObjectNamespace;
    DIRECTORY: DurableObjectNamespace;
    API_HOST: string;
    SOURCE_DOMAIN: string;
    ADMIN_TOKEN: string;
    SIGNING_KEYS: string;
  }

  interface GlobalProps {
    mainModule: { default: ExportedHandler<Env> };
    durableNamespaces: "Source" | "Directory";
  }
}
