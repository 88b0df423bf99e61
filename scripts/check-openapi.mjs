// Checks that openapi.yaml is a valid OpenAPI document. Run by `npm test`, after set-up.
// Never judges style, only validity.

import { existsSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { inRoot } from "./lib/paths.mjs";
import { main, say, Stop } from "./lib/say.mjs";

await main(async () => {
  const file = inRoot("openapi.yaml");
  if (!existsSync(file)) throw new Stop("openapi.yaml is missing.");
  const validator = new Validator();
  const { valid, errors } = await validator.validate(file);
  if (!valid) {
    const lines = [errors].flat().map((error) => `  ${error.instancePath || "(document)"}: ${error.message ?? error}`);
    throw new Stop(`openapi.yaml is not valid OpenAPI:\n${lines.join("\n")}`);
  }
  say(`openapi.yaml is valid OpenAPI ${validator.version}`);
});
