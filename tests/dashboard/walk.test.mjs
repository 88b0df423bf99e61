// A walk through the dashboard as an operator takes it, from signing in to deleting the source.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertAccessible, finish, signIn, world } from "./support.mjs";

let all;
let page;

before(async () => {
  all = await world();
});
after(() => all?.end());

const NAME = "billing";
const figure = (label) => page.locator(".gauge", { hasText: label }).locator(".figure");
const tab = (name) => page.getByRole("navigation", { name: "Source" }).getByRole("link", { name }).click();
const confirmBy = async (word, action) => {
  const dialog = page.getByRole("dialog");
  await assertAccessible(page, `the dialog before ${action}`);
  const button = dialog.getByRole("button", { name: action });
  assert.equal(await button.isDisabled(), true, "the name must be typed first");
  await dialog.getByRole("textbox").fill(word);
  await button.click();
  await dialog.waitFor({ state: "detached" });
};
const untilText = (locator, text) => locator.filter({ hasText: text }).first().waitFor();

/** The key that the page minted, as the tests' own calls take it. */
let source;

test("signing in asks for the admin token, and tells a wrong one", async () => {
  page = await all.open("", { signedIn: false });
  page.expected.push(/status of 401/);
  await assertAccessible(page, "signing in");
  await signIn(page, "not-the-token");
  await untilText(page.getByRole("alert"), "not the admin token");
  await signIn(page);
  await page.getByRole("heading", { name: "Sources" }).waitFor();
  await untilText(page.locator(".empty"), "No source yet");
  await assertAccessible(page, "no sources");
});

test("the token is in no cookie, in no URL and not in local storage, and outlives a reload of its tab", async () => {
  assert.deepEqual(await page.context().cookies(), []);
  assert.equal(await page.evaluate(() => localStorage.length), 0);
  await page.reload();
  await page.getByRole("heading", { name: "Sources" }).waitFor();
});

test("creating a source shows the API's own sentences beside their fields", async () => {
  page.expected.push(/status of 400/);
  await page.getByRole("link", { name: "New source" }).click();
  await page.getByLabel("Name", { exact: true }).fill(NAME);
  const limit = page.getByRole("group", { name: "Concurrency" }).getByLabel("Limit", { exact: true });
  await limit.fill("10001");
  await page.getByRole("button", { name: "Create source" }).click();
  const said = await all.server.admin("PUT", `/pools/${NAME}`, { concurrency: { limit: 10001 } });
  await untilText(page.locator(".wrong-note"), said.body.message);
  assert.equal(await limit.getAttribute("aria-invalid"), "true");
  await assertAccessible(page, "a refused field");
  await limit.fill("2");
  await page.getByRole("button", { name: "Create source" }).click();
  await page.getByRole("heading", { name: NAME }).waitFor();
  await untilText(figure("Slots in use"), "0");
  await assertAccessible(page, "the overview of a new source");
});

test("a key is minted and shown once", async () => {
  await tab("access");
  await page.getByLabel("Name of the worker").fill("worker-7");
  await page.getByRole("button", { name: "Mint a key" }).click();
  const accessKey = await page.locator(".secret code").first().textContent();
  assert.match(accessKey, /^sv_at_/);
  await assertAccessible(page, "a minted key");
  await page.getByRole("button", { name: "I have copied them" }).click();
  assert.equal((await page.content()).includes(accessKey), false);
  await untilText(page.getByRole("row"), "worker-7");
  source = { name: NAME, key: accessKey };
});

test("'try it' runs one cycle, and its slot is seen to come and go", async () => {
  await tab("overview");
  await page.getByRole("button", { name: "Run one cycle" }).click();
  await untilText(figure("Slots in use"), "1");
  await page.getByRole("row").filter({ hasText: "dashboard, try it" }).or(page.getByRole("button", { name: /^Release slot/ })).first().waitFor();
  await untilText(page.locator(".steps"), '{"released":true}');
  assert.deepEqual(await page.locator(".steps b").allTextContents(), ["200", "200", "200"]);
  const shown = await page.locator(".steps").textContent();
  assert.match(shown, /"slotId":"[^"]{6}…"/, "the slot id is shown cut short");
  await untilText(figure("Slots in use"), "0");
  await assertAccessible(page, "after one cycle");
  const { keys } = (await all.server.admin("GET", `/pools/${NAME}/keys`)).body;
  assert.equal(keys.find(({ name }) => name === "dashboard, try it").state, "revoked");
});

test("a slot is released by force, after its number was typed", async () => {
  const slot = await all.server.grant(source);
  await untilText(figure("Slots in use"), "1");
  await page.getByRole("button", { name: "Refresh" }).click();
  const row = page.getByRole("row").filter({ hasText: "worker-7" });
  const ref = await row.getByRole("rowheader").textContent();
  await row.getByRole("button", { name: `Release slot ${ref} by force` }).click();
  await confirmBy(ref, "Release it");
  await untilText(figure("Slots in use"), "0");
  assert.equal((await all.server.renew(source, slot)).status, 404);
});

test("a higher limit wakes those who wait, while one watches", async () => {
  const held = [await all.server.grant(source), await all.server.grant(source)];
  const waiters = [1, 2].map(() => all.server.acquire(source, { waitMs: 20_000 }));
  await untilText(figure("Waiting"), "2");
  await tab("settings");
  const limit = page.getByRole("group", { name: "Concurrency" }).getByLabel("Limit", { exact: true });
  await limit.fill("4");
  await page.getByRole("button", { name: "Save" }).click();
  await untilText(page.getByRole("status"), "Saved");
  const woken = await Promise.all(waiters);
  assert.deepEqual(woken.map(({ status }) => status), [200, 200]);
  await assertAccessible(page, "settings");
  await tab("overview");
  await untilText(figure("Slots in use"), "4");
  for (const slot of [...held, ...woken.map(({ body }) => body)]) await all.server.release(source, slot, { status: 200 });
});

test("a change made elsewhere is not overwritten: the edits wait for a decision", async () => {
  await tab("settings");
  const places = page.getByLabel("Places");
  await places.fill("7");
  const { settings } = (await all.server.admin("GET", `/pools/${NAME}`)).body;
  await all.server.admin("PUT", `/pools/${NAME}`, { ...settings, concurrency: { limit: 5 } });
  await untilText(page.getByRole("alert"), "changed elsewhere");
  await untilText(page.getByRole("alert"), "concurrency.limit: 5");
  assert.equal(await page.getByRole("button", { name: "Save", exact: true }).isDisabled(), true);
  await assertAccessible(page, "a conflict");
  await page.getByRole("button", { name: "Keep my edits" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await untilText(page.getByRole("status"), "Saved");
  const now = (await all.server.admin("GET", `/pools/${NAME}`)).body.settings;
  assert.deepEqual([now.concurrency.limit, now.queue.maxDepth], [5, 7]);
});

test("the log has every attempt, and filters find one", async () => {
  await tab("log");
  await untilText(page.getByRole("row"), "granted");
  await assertAccessible(page, "the log");
  const rows = page.getByRole("row");
  await page.getByLabel("Outcome").selectOption("no_free_slot");
  await untilText(page.locator(".empty"), "No such attempt");
  await page.getByLabel("Outcome").selectOption("granted");
  await untilText(rows, "granted");
  const { entries } = (await all.server.admin("GET", `/pools/${NAME}/log`)).body;
  const sought = page.waitForRequest(/outcome=granted&requestId=[0-9a-f]{32}$/);
  await page.getByLabel("Key, address, slot or request").fill(entries[0].requestId);
  await sought;
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  await page.getByLabel("Key, address, slot or request").fill("127.0.0.2");
  await untilText(page.locator(".empty"), "Nothing that was searched matches");
  await page.getByRole("radio", { name: "Changes by operators" }).check();
  await untilText(rows, "forced");
});

test("a header set is explained", async () => {
  await tab("learning");
  await page.getByLabel("Status line and headers").fill("HTTP/1.1 429 Too Many Requests\nRetry-After: 2\nX-Quota: 1\nX-Quota: 2\n");
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  await untilText(page.locator(".explained .data div").filter({ hasText: "retry after" }), "2.0 s");
  await untilText(page.locator(".explained .data div").filter({ hasText: "closes the gate for" }), "2.0 s");
  await untilText(page.locator(".explained").getByRole("row"), "cooldown until");
  const { state } = (await all.server.admin("GET", `/pools/${NAME}`)).body;
  assert.equal(state.cooldownUntil, null, "nothing was changed by it");
  await assertAccessible(page, "what was explained");
});

test("a cool-down leads from where it shows to the report behind it, and to its end", async () => {
  await tab("access");
  const { body: minted } = await all.server.admin("POST", `/pools/${NAME}/keys`, {});
  const caller = { name: NAME, key: minted.accessKey };
  const slot = await all.server.grant(caller);
  await all.server.release(caller, slot, { status: 429, retryAfterMs: 300_000 });
  await tab("overview");
  await page.getByRole("link", { name: "why, and how to end it" }).click();
  await untilText(page.locator(".panel").filter({ hasText: "The last report" }), "throttled");
  await page.getByRole("button", { name: "Open the gate" }).click();
  await confirmBy(NAME, "Forget it");
  await untilText(page.locator(".panel").filter({ hasText: "What was learned" }), "Nothing");
  const { state } = (await all.server.admin("GET", `/pools/${NAME}`)).body;
  assert.equal(state.cooldownUntil, null);
  await assertAccessible(page, "after a cool-down");
});

test("a key is revoked, after its name was typed", async () => {
  await tab("access");
  await page.getByRole("button", { name: "Revoke key worker-7" }).click();
  await confirmBy("worker-7", "Revoke it");
  await untilText(page.getByRole("row").filter({ hasText: "worker-7" }), "revoked");
  assert.equal((await all.server.acquire(source)).status, 401);
});

test("the source is deleted, after its name was typed", async () => {
  await tab("settings");
  await page.getByRole("button", { name: "Delete the source" }).click();
  await confirmBy(NAME, "Delete it");
  await page.getByRole("heading", { name: "Sources" }).waitFor();
  assert.equal((await all.server.admin("GET", `/pools/${NAME}`)).status, 404);
});

test("signing out forgets the token", async () => {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await finish(page);
});
