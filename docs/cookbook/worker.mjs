// A worker that holds a slot around each call of an upstream. Node 20 or later, no dependency.
//
//   LOCK_API=… ACCESS_KEY=… UPSTREAM=https://upstream.example/v1/things node worker.mjs [calls]
//
// `npm start` prints LOCK_API and ACCESS_KEY. Take `withSlot` over as it is; the lines at the end are its use.

const { LOCK_API, ACCESS_KEY, UPSTREAM } = process.env;
for (const [name, value] of Object.entries({ LOCK_API, ACCESS_KEY, UPSTREAM })) if (!value) throw new Error(`${name} is not set`);
const now = () => performance.now(); // our own clock, which nobody sets back
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const post = (path, body, headers = {}, patienceMs = 15_000) =>
  fetch(`${LOCK_API}/${path}`, {
    method: "POST",
    headers: { "X-Swarmvia-Key": ACCESS_KEY, ...headers },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(Math.max(1, Math.ceil(patienceMs))),
  })
    .then(async (answer) => ({ status: answer.status, headers: answer.headers, body: await answer.json() }))
    .catch(() => ({ status: 0, headers: new Headers() })); // no answer
async function acquire(waitMs) {
  const name = { "Idempotency-Key": crypto.randomUUID() };
  for (let first = now(); ;) {
    const sent = now();
    const { status, headers, body } = await post("acquire", { waitMs }, name, waitMs + 15_000);
    const since = headers.has("x-swarmvia-replayed") ? first : sent; // the grant is no older than this
    if (status === 200) return { ...body, until: since + Number(headers.get("x-swarmvia-queued-ms")) + body.termMs };
    if (![0, 429, 503, 504].includes(status)) throw new Error(`acquire: ${status} ${body.message}`);
    await sleep(1000 * (headers.get("Retry-After") ?? (status === 504 ? 0 : 1)));
    if (status === 429 || status === 504) first = now(); // nothing is held; else a grant may have been lost
  }
}
/** Runs `work(signal, report)` under a slot; the signal aborts when the slot is lost. */
export async function withSlot(waitMs, work) {
  const [lease, lost, report] = [await acquire(waitMs), new AbortController(), {}];
  let isOver = false, timer;
  const renewIn = (ms) => (timer = setTimeout(renew, Math.min(ms, lease.until - now())));
  async function renew() {
    if (now() >= lease.until) return lost.abort(new Error("the lease has ended"));
    const { status, body } = await post(`${lease.slotId}/renew`, undefined, {}, lease.until - now());
    if (status === 404) return lost.abort(new Error("the slot was lost"));
    if (status === 200) [lease.until, lease.leaseDeadline] = [lease.until + body.leaseDeadline - lease.leaseDeadline, body.leaseDeadline];
    // 409: it can't be extended, so stop at `until`. Anything else: the renewal failed, try again soon.
    const pause = { 200: lease.renewIntervalMs, 409: Infinity }[status] ?? Math.min(1000, lease.renewIntervalMs);
    if (!isOver) renewIn(pause);
  }
  renewIn(lease.renewIntervalMs);
  try {
    return await work(lost.signal, report);
  } finally {
    isOver = true;
    clearTimeout(timer);
    const release = async () => (await post(`${lease.slotId}/release`, report)).status;
    for (let tries = 3; tries > 0 && [0, 503].includes(await release()); tries -= 1) await sleep(1000);
  }
}

/** One upstream call under a slot. What the upstream said goes into the release, so that the limits are learned. */
async function callUpstream() {
  return withSlot(10_000, async (signal, report) => {
    const answer = await fetch(UPSTREAM, { signal });
    report.status = answer.status;
    report.headers = Object.fromEntries([...answer.headers].filter(([name]) => /limit|retry-after|quota|^date$/.test(name)));
    return { status: answer.status, text: await answer.text() };
  });
}

const calls = Array.from({ length: Number(process.argv[2] ?? 1) }, callUpstream);
// All of them, so that each has released its slot before this ends.
for (const { value, reason } of await Promise.allSettled(calls)) {
  if (value) console.log(value.status, value.text.slice(0, 100));
  else {
    console.error(reason);
    process.exitCode = 1;
  }
}
