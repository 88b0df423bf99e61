// The first minute of `npm start`: a source called demo, a key for it, lines to paste, one slot.
// Never changes a demo source that exists, and never shows a whole slot id: it is a secret.

import { say, Stop } from "./say.mjs";

const SETTINGS = { concurrency: { limit: 3 } };

/** Makes sure that the source exists and returns a new access key for it. */
export async function demoKey(base, adminToken) {
  const admin = { Authorization: `Bearer ${adminToken}` };
  const found = await call("GET", `${base}/pools/demo`, admin);
  if (found.status === 404) await expect(201, "PUT", `${base}/pools/demo`, admin, SETTINGS);
  else if (found.status !== 200) throw unexpected("GET /pools/demo", found);
  const minted = await expect(201, "POST", `${base}/pools/demo/keys`, admin, { name: "npm start" });
  return minted.accessKey;
}

export function sayHowToCall(base, accessKey) {
  say(`
Paste these into another terminal. First, once (the key is good for an hour; the next start makes another):

export ACCESS_KEY=${accessKey}
export LOCK_API=${base}/pools/demo/lock

Acquire a slot, waiting up to 5 s for a free one; the answer is shown and its slotId kept in SLOT:

SLOT=$(curl -sS -w '\\n' -X POST "$LOCK_API/acquire" -H "X-Swarmvia-Key: $ACCESS_KEY" -d '{"waitMs":5000}' | tee -a /dev/stderr | sed -n 's/.*"slotId":"\\([^"]*\\)".*/\\1/p')

Renew it before its lease ends:

curl -sS -w '\\n' -X POST "$LOCK_API/$SLOT/renew" -H "X-Swarmvia-Key: $ACCESS_KEY"

Release it, and report what came of the call it was for:

curl -sS -w '\\n' -X POST "$LOCK_API/$SLOT/release" -H "X-Swarmvia-Key: $ACCESS_KEY" -d '{"status":200}'
`);
}

/** The same three calls, made and shown here. */
export async function showOneCycle(base, accessKey) {
  const lock = `${base}/pools/demo/lock`;
  const key = { "X-Swarmvia-Key": accessKey };
  say("The same three calls, made just now:");
  const slot = await show("acquire", `${lock}/acquire`, key, { waitMs: 5000 });
  if (typeof slot.slotId !== "string") return;
  await show("renew", `${lock}/${slot.slotId}/renew`, key);
  await show("release", `${lock}/${slot.slotId}/release`, key, { status: 200 });
}

async function show(name, url, headers, body) {
  const answer = await call("POST", url, headers, body);
  const shown = JSON.stringify(answer.body, (field, value) => (field === "slotId" ? `${value.slice(0, 6)}...` : value));
  say(`  ${name.padEnd(8)} ${body ? JSON.stringify(body) : "(no body)"}\n        -> ${answer.status} ${shown}`);
  return answer.body;
}

async function expect(status, method, url, headers, body) {
  const answer = await call(method, url, headers, body);
  if (answer.status !== status) throw unexpected(`${method} ${new URL(url).pathname}`, answer);
  return answer.body;
}

const unexpected = (what, { status, body }) => new Stop(`${what} answered ${status} ${JSON.stringify(body)}.`);

async function call(method, url, headers, body) {
  const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  try {
    return { status: answer.status, body: JSON.parse(text) };
  } catch {
    return { status: answer.status, body: { text } };
  }
}
