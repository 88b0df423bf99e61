// Takes the pictures in docs/img, of a service of its own with made-up sources:
//   node tests/dashboard/screenshots.mjs
// No test: whoever takes them looks at them.

import { mkdirSync } from "node:fs";
import { inRoot } from "../../scripts/lib/paths.mjs";
import { PHONE, sleep, world } from "./support.mjs";

const LONG_NAME = "a-source-with-the-longest-name-that-there-can-be-in-this-system";
const WATCHED_MS = 45_000;

const all = await world();
const { server } = all;
mkdirSync(inRoot("docs", "img"), { recursive: true });

/** A picture of the whole page, or with `seen` of what a screen shows. */
async function take(page, name, { seen = false } = {}) {
  await page.waitForTimeout(600);
  await page.screenshot({ path: inRoot("docs", "img", `${name}.png`), fullPage: !seen });
}
const at = (hash, options) => all.open(hash, options);

const empty = await at("#/sources");
await take(empty, "sources-empty", { seen: true });

const billing = await server.createSource("billing-api", { concurrency: { limit: 8, adaptive: true, max: 12 }, rpm: { limit: 120, adaptive: true }, lease: { termMs: 20_000 } });
await server.admin("PUT", "/pools/geocoder", { concurrency: { limit: 40 } });
const crowded = await server.createSource(LONG_NAME, { concurrency: { limit: 10_000 }, lease: { termMs: 600_000 } });
for (let held = 0; held < 10_000; held += 250) await Promise.all(Array.from({ length: 250 }, () => server.acquire(crowded)));

// Workers that come and go, more of them than there are slots, and one whose upstream throttles.
const named = await Promise.all(["worker-1", "worker-2", "nightly-import"].map(async (name) => (await server.admin("POST", "/pools/billing-api/keys", { name })).body.accessKey));
let working = true;
const work = async (key, index) => {
  while (working) {
    const answer = await server.acquire({ ...billing, key }, { waitMs: index % 4 === 0 ? 0 : 8000 });
    if (answer.status !== 200) { await sleep(1500); continue; }
    await sleep(2500 + 700 * ((index * 7) % 11));
    await server.release(billing, answer.body, { status: 200, headers: { "x-ratelimit-limit": 300, "x-ratelimit-remaining": 240, "x-ratelimit-reset": 40 } });
  }
};
const page = await at("#/sources/billing-api", { colorScheme: "light" });
const dark = await at("#/sources/billing-api", { colorScheme: "dark" });
const phone = await at("#/sources/billing-api", { colorScheme: "dark", viewport: PHONE });
for (const one of [page, dark, phone]) await one.getByRole("radio", { name: "1 min" }).check();
const workers = [];
for (let index = 0; index < 13; index += 1) {
  workers.push(work(named[index % 3], index));
  await sleep(WATCHED_MS / 20);
}
await page.getByRole("radio", { name: "Wait up to 5 s" }).check();
await page.getByRole("button", { name: "Run one cycle" }).click();
await sleep(WATCHED_MS / 3);
for (const [one, name] of [[page, "overview-light"], [dark, "overview-dark"], [phone, "overview-phone"]]) await take(one, name);
await take(await at("#/sources"), "sources", { seen: true });
await take(await at("#/sources", { viewport: PHONE, colorScheme: "dark" }), "sources-phone", { seen: true });
await take(await at("#/sources/billing-api/log"), "log", { seen: true });
working = false;
await Promise.all(workers);

const held = await server.grant(billing);
await server.release(billing, held, { status: 429, throttled: 1, retryAfterMs: 45_000 });
await page.evaluate(() => scrollTo(0, 0));
await take(page, "cool-down", { seen: true });

const many = await at(`#/sources/${LONG_NAME}`);
await many.getByText("1 to 50 of 10,000").waitFor();
await take(many, "ten-thousand-slots", { seen: true });
const narrow = await at(`#/sources/${LONG_NAME}`, { viewport: PHONE });
await narrow.getByText("1 to 50 of 10,000").waitFor();
await narrow.getByRole("heading", { name: "Who holds what" }).evaluate((heading) => heading.scrollIntoView());
await take(narrow, "slots-phone", { seen: true });

const access = await at("#/sources/billing-api/access");
await access.getByLabel("Name of the worker").fill("worker-3");
await access.getByRole("button", { name: "Mint a key" }).click();
await access.locator(".secret").first().waitFor();
// The picture shows no key that ever was.
for (const [index, text] of ["sv_at_shown-this-once", "sv_rt_shown-this-once"].entries()) {
  await access.locator(".secret code").nth(index).evaluate((code, shown) => (code.textContent = shown), text);
}
await take(access, "access");

const learning = await at("#/sources/billing-api/learning");
await learning.getByRole("button", { name: "Fill in a sample" }).click();
await learning.getByRole("button", { name: "Explain", exact: true }).click();
await learning.locator(".explained").waitFor();
await take(learning, "learning");

const settings = await at("#/sources/billing-api/settings", { viewport: { width: 1280, height: 1900 } });
await settings.getByLabel("Places").fill("500");
const { settings: now } = (await server.admin("GET", "/pools/billing-api")).body;
await server.admin("PUT", "/pools/billing-api", { ...now, concurrency: { ...now.concurrency, limit: 10 } });
await settings.getByText("changed elsewhere").waitFor();
await take(settings, "settings-conflict");
const deletion = await at("#/sources/billing-api/settings", { viewport: PHONE });
await deletion.getByRole("button", { name: "Delete the source" }).click();
await take(deletion, "delete-phone", { seen: true });

const signedOut = await at("", { signedIn: false, colorScheme: "dark" });
await take(signedOut, "sign-in", { seen: true });
await take(await at("#/new"), "new-source");
const docs = await at("#post-/pools/-source-/lock/acquire", { path: "/docs" });
await docs.waitForTimeout(2500);
await take(docs, "docs", { seen: true });

await server.kill();
await page.getByText(/showing the state of (1\d|[89]) s ago/).waitFor({ timeout: 20_000 });
await take(page, "unreachable", { seen: true });
await server.start();
await all.end();
