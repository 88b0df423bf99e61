// What the pages promise beside what they do: where they are, how much they load, how they fail.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { inRoot } from "../../scripts/lib/paths.mjs";
import { assertAccessible, finish, PHONE, world } from "./support.mjs";

const MOST_DASHBOARD_BYTES = 150 * 1024;
const MOST_DOCS_BYTES = 300 * 1024;
const MOST_TICK_BYTES = 10 * 1024;
const LONG_NAME = `a-source-with-the-longest-name-that-there-can-be-${"0123456789".repeat(2)}`.slice(0, 63);

let all;
let source;

before(async () => {
  all = await world();
  source = await all.server.createSource("crowded", { concurrency: { limit: 10_000 }, lease: { termMs: 600_000 } });
});
after(() => all?.end());

const head = (path, { host = "localhost", method = "GET" } = {}) => fetchRaw(method, path, host);

/** The head and body of an answer, whatever they are. */
async function fetchRaw(method, path, host) {
  const text = await all.server.raw(`${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`).answer;
  const [top, body] = text.split(/\r\n\r\n(.*)/s);
  const [first, ...lines] = top.split("\r\n");
  const headers = Object.fromEntries(lines.map((line) => [line.split(":")[0].toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]));
  return { status: Number(first.split(" ")[1]), headers, body: body ?? "" };
}

test("the pages are on the API hosts only, and only at their paths", async () => {
  for (const path of ["/dashboard", "/dashboard/", "/docs", "/docs/"]) {
    const answer = await head(path);
    assert.deepEqual([answer.status, answer.headers["content-type"]], [200, "text/html; charset=utf-8"], path);
    assert.equal((await head(path, { method: "HEAD" })).status, 200);
    assert.equal((await head(path, { method: "POST" })).status, 405);
    for (const host of ["crowded.swarmvia.cloud", "evil.example"]) assert.equal((await head(path, { host })).status, 404, host);
  }
  for (const path of ["/", "/index.html", "/dashboard/index.html", "/dashboard/assets/", "/dashboard/assets/none.js", "/dashboard/x", "/.inputs", "/pools/crowded/dashboard"]) {
    const answer = await head(path);
    assert.equal(answer.status, 404, path);
    assert.match(answer.body, /"error":"not_found"/, path);
  }
});

test("the headers allow nothing but what the pages need", async () => {
  const { headers, body } = await head("/dashboard");
  assert.match(headers["content-security-policy"], /^default-src 'none'; script-src 'self'; style-src 'self'; .*frame-ancestors 'none'/);
  assert.equal(headers["content-security-policy"].includes("unsafe"), false);
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(headers["referrer-policy"], "no-referrer");
  assert.equal(headers["cache-control"], "no-cache");
  const script = body.match(/src="(\/dashboard\/assets\/[^"]+\.js)"/)[1];
  const asset = await head(script);
  assert.deepEqual([asset.status, asset.headers["content-type"]], [200, "text/javascript; charset=utf-8"]);
  assert.match(asset.headers["cache-control"], /immutable/);
});

test("a load is small", (t) => {
  const weigh = (site) => {
    const folder = inRoot("build-pages", site);
    const files = ["index.html", ...readdirSync(`${folder}/assets`).map((name) => `assets/${name}`)];
    return files.reduce((sum, file) => sum + gzipSync(readFileSync(`${folder}/${file}`), { level: 9 }).length, 0);
  };
  const [dashboard, docs] = [weigh("dashboard"), weigh("docs")];
  t.diagnostic(`gzipped: dashboard ${(dashboard / 1024).toFixed(1)} KiB, docs ${(docs / 1024).toFixed(1)} KiB`);
  assert.ok(dashboard <= MOST_DASHBOARD_BYTES, `the dashboard is ${dashboard} bytes`);
  assert.ok(docs <= MOST_DOCS_BYTES, `the docs are ${docs} bytes`);
});

test("a tick is one small request, also with 10,000 slots, and stops while the page is hidden", async () => {
  for (let held = 0; held < 10_000; held += 250) {
    const answers = await Promise.all(Array.from({ length: 250 }, () => all.server.acquire(source)));
    assert.ok(answers.every(({ status }) => status === 200));
  }
  const page = await all.open("#/sources/crowded");
  await page.locator(".figure", { hasText: "10,000" }).waitFor();
  await page.getByText("1 to 50 of 10,000").waitFor();
  await assertAccessible(page, "10,000 slots");

  const isTick = (request) => request.url().endsWith("/pools/crowded");
  const before = page.calls.length;
  await page.waitForTimeout(4200);
  const during = page.calls.slice(before);
  const ticks = during.filter(isTick);
  assert.ok(ticks.length >= 3 && ticks.length <= 5, `${ticks.length} ticks in 4 s`);
  assert.ok(during.length - ticks.length <= 1, "beside the ticks, the page of slots at most");
  for (const tick of ticks.slice(0, 3)) {
    const body = await (await tick.response()).body();
    assert.ok(body.length < MOST_TICK_BYTES, `a tick is ${body.length} bytes`);
  }

  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("51 to 100 of 10,000").waitFor();

  await page.evaluate(() => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "hidden" });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.waitForTimeout(500);
  const hidden = page.calls.length;
  await page.waitForTimeout(2500);
  assert.equal(page.calls.length, hidden, "nothing is asked while the page is hidden");
  await finish(page);
});

test("what the service counts and has learned is shown; what it does not send is a dash", async () => {
  const page = await all.open("#/sources/crowded");
  const row = (name) => page.getByRole("row").filter({ hasText: name }).getByRole("cell");
  let granted = 1000;
  let extra = {};
  await page.route("**/pools/crowded", async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    delete body.state.counters;
    delete body.state.learned;
    Object.assign(body.state, extra);
    if (extra.counters) extra.counters.acquires.granted = granted += 3;
    await route.fulfill({ response: answer, json: body });
  });
  await row("Granted").filter({ hasText: "—" }).first().waitFor();
  extra = { counters: { acquires: { granted, queue_full: 12345 }, throttled: 5, released: 50 }, learned: { concurrency: { limit: 7, at: Date.now(), from: { status: 200 } }, rate: null } };
  // Of all; that of the last minute may be as much, where the page had read the real ones before.
  await row("Queue full").filter({ hasText: "12,345" }).last().waitFor();
  await row("Granted").filter({ hasText: /^(3|6|9)$/ }).first().waitFor();
  await row("Left").filter({ hasText: "—" }).first().waitFor();
  await assertAccessible(page, "with counts");
  await page.goto(`${all.base}/dashboard#/sources/crowded/learning`);
  await page.locator(".data").getByText("concurrency").waitFor();
  await page.getByRole("button", { name: "Forget it" }).waitFor();
  await finish(page);
});

test("a service that can't be reached leaves the last state standing, with its age, and is found again", async () => {
  const page = await all.open("#/sources/crowded");
  await page.locator(".figure", { hasText: "10,000" }).waitFor();
  page.expected.push(/ERR_/, /Failed to load/);
  await all.server.kill();
  try {
    await page.getByText(/can't be reached; showing the state of \d+ s ago/).waitFor();
    assert.equal(await page.locator(".figure", { hasText: "10,000" }).count(), 1);
    await assertAccessible(page, "an unreachable service");
  } finally {
    await all.server.start();
  }
  await page.getByText(/can't be reached/).waitFor({ state: "detached", timeout: 20_000 });
  await finish(page);
});

test("a token that is no longer good leads back to signing in, and from there to where one was", async () => {
  const page = await all.open("#/sources/crowded/log");
  page.expected.push(/status of 401/);
  await page.getByRole("heading", { name: "Log" }).waitFor();
  await page.route("**/pools/**", (route) => route.fulfill({ status: 401, json: { error: "unauthorized", message: "Present the admin token." } }));
  await page.getByText("no longer accepted").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  assert.match(page.url(), /#\/sources\/crowded\/log$/);
  await finish(page);
});

test("the longest name fits a phone: nothing is wider than the screen", async () => {
  await all.server.createSource(LONG_NAME);
  for (const colorScheme of ["light", "dark"]) {
    const page = await all.open("#/sources", { viewport: PHONE, colorScheme });
    for (const hash of ["#/sources", "#/new", ...["overview", "access", "learning", "log", "settings"].map((tab) => `#/sources/${LONG_NAME}/${tab}`)]) {
      await page.goto(`${all.base}/dashboard${hash}`);
      await page.waitForTimeout(700);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${hash} is ${over} pixels too wide`);
      await assertAccessible(page, `${hash} on a phone, ${colorScheme}`);
    }
    await finish(page);
  }
});

test("all can be reached with the keyboard, and the dialog gives the focus back", async () => {
  const page = await all.open(`#/sources/${LONG_NAME}/settings`);
  await page.getByRole("button", { name: "Delete the source" }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "MAIN");
  const opener = page.getByRole("button", { name: "Delete the source" });
  await opener.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("textbox").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "INPUT", "what must be typed has the focus");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.match(await page.evaluate(() => document.activeElement.textContent), /Delete the source/);
  await finish(page);
});

test("the docs show every operation of the contract, from this host alone", async () => {
  for (const options of [{ colorScheme: "light" }, { colorScheme: "dark" }, { viewport: PHONE }]) {
    const page = await all.open("", { path: "/docs", ...options });
    for (const title of ["Acquire a slot", "Read the access log", "Mint an access key"]) await page.getByText(title).filter({ visible: true }).first().waitFor();
    await assertAccessible(page, `the docs, ${JSON.stringify(options)}`);
    if (!options.viewport) await page.locator('[data-content-id="post-/pools/-source-/lock/acquire"]').click();
    await page.getByText("/pools/{source}/lock/acquire").filter({ visible: true }).first().waitFor();
    await finish(page);
  }
});
