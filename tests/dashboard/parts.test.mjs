// The parts of the dashboard that need no browser: what is read from what people type, and the examples,
// which are run as they stand.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { isTypable, shown, share, span, words } from "../../dashboard/app/format.ts";
import { DEFAULTS, placeholderOf, toSettings, toValues } from "../../dashboard/app/settings/model.ts";
import { parseHead } from "../../dashboard/app/source/headers.ts";
import { snippets } from "../../dashboard/app/source/snippets.ts";
import { onPath } from "../../scripts/lib/run.mjs";
import { serve } from "../serve/support.mjs";

let server;
let source;

before(async () => {
  server = await serve();
  source = await server.createSource("examples");
});
after(() => server?.end());

test("a pasted head is read as curl shows it, with or without a status line", () => {
  assert.deepEqual(parseHead("HTTP/2 429\r\nretry-after: 2\r\n\r\n"), { status: 429, headers: { "retry-after": "2" } });
  assert.deepEqual(parseHead("< HTTP/1.1 200 OK\n< RateLimit: limit=10, remaining=1"), { status: 200, headers: { RateLimit: "limit=10, remaining=1" } });
  assert.deepEqual(parseHead("X: 1\nX: 2\nX:3"), { headers: { X: ["1", "2", "3"] } });
  assert.deepEqual(parseHead("nothing of the kind\n: no name\n"), { headers: {} });
});

test("the settings that stand, sent back as the form holds them, are the same settings", async () => {
  for (const sent of [{}, { concurrency: { limit: 20, max: 40, adaptive: true }, rpm: { limit: 60 }, lease: { termMs: 1000, renewIntervalMs: 200 }, location: "weur" }]) {
    await server.admin("PUT", "/pools/settings", sent);
    const before = (await server.admin("GET", "/pools/settings")).body.settings;
    const answer = await server.admin("PUT", "/pools/settings", toSettings(toValues(before), before.access));
    assert.deepEqual(answer.body.settings, before);
  }
  assert.deepEqual(toSettings(DEFAULTS), { concurrency: { adaptive: false }, rpm: { adaptive: false } });
});

test("all of a name is seen, and nothing in it turns the text around it", () => {
  for (const [name, seen, typable] of [
    ["worker-7", "worker-7", true],
    ["Bücher 本 🚀", "Bücher 本 🚀", true],
    [" padded ", "␣padded␣", true],
    ["a\0b", "a<U+0000>b", false],
    ["\u202Eevil", "<U+202E>evil", false],
    ["\u200b", "<U+200B>", false],
    ["\u{e0041}", "<U+E0041>", false],
    ["  ", "␣␣", false],
  ]) {
    assert.deepEqual([shown(name), isTypable(name)], [seen, typable], JSON.stringify(name));
  }
});

test("what stands for an empty field is what the service takes it for", async () => {
  for (const edits of [{}, { "lease.termMs": "45000" }, { "concurrency.limit": "7" }]) {
    const values = { ...DEFAULTS, ...edits };
    const { settings } = (await server.admin("PUT", "/pools/defaults", toSettings(values))).body;
    for (const [path, value] of Object.entries(values)) {
      const [part, field] = path.split(".");
      if (value === "" && field && path !== "rpm.limit") assert.equal(Number.parseInt(placeholderOf(path, values), 10), settings[part][field], path);
    }
  }
});

test("what is no number goes to the service as it was typed", () => {
  assert.deepEqual(toSettings({ "queue.maxDepth": "ten", "rpm.limit": " 60 " }), { queue: { maxDepth: "ten" }, rpm: { limit: 60 } });
});

test("spans, shares and names are read with ease", () => {
  const cases = { 0: "0 s", 999: "1 s", 59_000: "59 s", 60_000: "1 min 00 s", 185_000: "3 min 05 s", 3_600_000: "1 h 00 min", 86_400_000: "1 d 0 h" };
  for (const [ms, text] of Object.entries(cases)) assert.equal(span(Number(ms)), text);
  assert.deepEqual([span(12, { fine: true }), span(1500, { fine: true })], ["12 ms", "1.5 s"]);
  assert.deepEqual([share(null), share(0), share(0.004), share(0.5)], ["—", "0 %", "0.4 %", "50 %"]);
  assert.equal(words("closesGateForMs"), "closes gate for ms");
});

for (const wait of [false, true]) {
  const of = (language) => snippets(language, `http://localhost:${server.port}`, source.name, wait).map(({ code }) => code);
  const run = (program, args) => {
    const env = { ...process.env, ACCESS_KEY: source.key };
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", env });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  const none = async () => assert.equal((await server.state(source)).inUse, 0);
  const kind = wait ? "waiting" : "failing fast";

  test(`the curl example runs as it stands, ${kind}`, { skip: !onPath("curl") }, async () => {
    const [acquire, renew, release] = of("curl");
    const script = `RESULT=$(${acquire})\n${acquire.split("\n")[0]}\nSLOT=$(echo "$RESULT" | sed -n 's/.*"slotId":"\\([^"]*\\)".*/\\1/p')\n${renew}\n${release}`;
    assert.match(run("sh", ["-ec", script]), /"leaseDeadline":\d+.*"released":true/s);
    await none();
  });

  test(`the JavaScript example runs as it stands, ${kind}`, async () => {
    const [acquire, renew, release] = of("javascript");
    const script = `${acquire}\n${renew}\nconst upstream = new Response("", { status: 200, headers: { "x-any": "1" } });\n${release}`;
    run(process.execPath, ["--input-type=module", "-e", script]);
    await none();
  });

  test(`the Python example runs as it stands, ${kind}`, { skip: !onPath("python3") }, async () => {
    const [acquire, renew, release] = of("python");
    const upstream = "class upstream: status = 200; headers = {'x-any': '1'}";
    const script = [acquire, renew, upstream, release].join("\n");
    run("python3", ["-c", script]);
    await none();
  });
}
