// What the dashboard's tests share: a bare workerd of their own, a browser, and pages that are watched.
// A page that asks another host for anything, breaks its policy or logs an error fails its test.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { chromiumPath } from "../../scripts/lib/chromium.mjs";
import { inRoot } from "../../scripts/lib/paths.mjs";
import { ADMIN_TOKEN, serve, sleep } from "../serve/support.mjs";

export { sleep };

const AXE = readFileSync(inRoot("node_modules", "axe-core", "axe.min.js"), "utf8");
export const DESK = { width: 1280, height: 900 };
export const PHONE = { width: 390, height: 844 };

/** A server and a browser. `end` ends both. */
export async function world() {
  const server = await serve();
  // Chromium has no sandbox for root, which is who tests in a container.
  const browser = await chromium.launch({ executablePath: chromiumPath(), chromiumSandbox: process.getuid?.() !== 0 });
  const base = `http://localhost:${server.port}`;
  const contexts = [];

  const self = {
    server,
    base,

    /** A page of a browser context of its own. Options as Playwright's, and `signedIn`. */
    async open(hash = "", { signedIn = true, path = "/dashboard", ...options } = {}) {
      const context = await browser.newContext({ viewport: DESK, locale: "en-GB", reducedMotion: "reduce", ...options });
      contexts.push(context);
      if (signedIn) await context.addInitScript((token) => sessionStorage.setItem("swarmvia-admin-token", token), ADMIN_TOKEN);
      const page = await context.newPage();
      page.setDefaultTimeout(10_000);
      watch(page, base);
      await page.goto(`${base}${path}${hash}`);
      return page;
    },

    async end() {
      for (const context of contexts) await context.close();
      await browser.close();
      await server.end();
    },
  };
  return self;
}

/** Collects what must not happen into `page.complaints`; errors that a test expects go into `page.expected`. */
function watch(page, base) {
  page.complaints = [];
  page.expected = [];
  page.calls = [];
  page.on("request", (request) => {
    page.calls.push(request);
    if (!request.url().startsWith(base)) page.complaints.push(`asked another host: ${request.url()}`);
    if (request.url().includes(ADMIN_TOKEN)) page.complaints.push("the admin token is in a URL");
  });
  page.on("pageerror", (error) => page.complaints.push(`threw ${error}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.text().includes("Content Security Policy")) page.complaints.push(message.text());
  });
}

/** Closes a page. Nothing that it did was wrong, but for what the test expected. */
export async function finish(page) {
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.context().close();
  const unexpected = page.complaints.filter((complaint) => !page.expected.some((pattern) => pattern.test(complaint)));
  assert.deepEqual(unexpected, []);
}

/** Nothing serious or critical, says axe-core. */
export async function assertAccessible(page, what) {
  // Through the debugger: the page's policy lets no script in.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`).join("\n  ")}`);
  assert.deepEqual(told, [], what);
}

/** Signs in by the form. */
export async function signIn(page, token = ADMIN_TOKEN) {
  await page.getByLabel("Admin token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}
