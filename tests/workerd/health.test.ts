import { exports } from "cloudflare:workers";
import { expect, test } from "vitest";

test("healthz answers 200 without credentials", async () => {
  const answer = await exports.default.fetch("http://localhost/healthz");
  await answer.arrayBuffer();
  expect(answer.status).toBe(200);
});
