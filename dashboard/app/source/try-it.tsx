// One cycle for real: mints a key for a minute, acquires, renews, releases, revokes the key, and shows
// every answer. The slot id is a secret and is shown cut short, the key not at all.

import { useState } from "preact/hooks";
import { admin, exchange, pool, sentence, type Answer } from "../api";
import { span } from "../format";
import type { MintedKey, Settings } from "../types";
import { Segments } from "../ui/segments";

const KEY_TTL_MS = 60_000;
const PATIENCE_MS = 15_000;

interface Step {
  name: string;
  /** Nothing yet: it is under way. */
  answer?: { status: number; ms: number; headers: string[]; body: string };
  problem?: string;
}

type Wait = "0" | "5000";
const WAITS = [{ value: "0", label: "Fail fast" }, { value: "5000", label: "Wait up to 5 s" }] as const;
type Hold = "0" | "3000" | "15000";
const HOLDS = [{ value: "0", label: "at once" }, { value: "3000", label: "after 3 s" }, { value: "15000", label: "after 15 s" }] as const;

export function TryIt({ name, settings, onStep }: { name: string; settings: Settings; onStep: () => void }) {
  const [wait, setWait] = useState<Wait>("0");
  const [hold, setHold] = useState<Hold>("3000");
  const [steps, setSteps] = useState<Step[]>([]);
  const [busy, setBusy] = useState(false);

  async function cycle() {
    setBusy(true);
    setSteps([]);
    let keyId: string | null = null;
    try {
      const minted = await admin<MintedKey>("POST", pool(name, "keys"), { body: { name: "dashboard, try it", ttlMs: KEY_TTL_MS, refreshTtlMs: KEY_TTL_MS } });
      keyId = minted.keyId;
      const headers = { "X-Swarmvia-Key": minted.accessKey };
      const post = (verb: string, body?: unknown) => () => exchange("POST", `${pool(name, "lock")}/${verb}`, { headers, body, patienceMs: Number(wait) + PATIENCE_MS });
      const grant = await step(`acquire ${wait === "0" ? "{}" : `{"waitMs":${wait}}`}`, post("acquire", wait === "0" ? {} : { waitMs: Number(wait) }));
      if (grant?.status === 200) {
        const half = Math.min(Number(hold), settings.lease.termMs) / 2;
        await pause(half);
        await step("renew", post(`${grant.body.slotId}/renew`));
        await pause(half);
        await step('release {"status":200}', post(`${grant.body.slotId}/release`, { status: 200 }));
      }
    } catch (error) {
      setSteps((before) => [...before, { name: "mint a key", problem: sentence(error) }]);
    }
    if (keyId) await admin("DELETE", pool(name, "keys", keyId)).catch(() => {}); // It ends by itself within a minute.
    setBusy(false);
  }

  async function step(title: string, send: () => Promise<Answer>): Promise<Answer | null> {
    const finish = (done: Partial<Step>) => setSteps((before) => [...before.slice(0, -1), { name: title, ...done }]);
    setSteps((before) => [...before, { name: title }]);
    const sent = performance.now();
    try {
      const answer = await send();
      finish({ answer: { status: answer.status, ms: performance.now() - sent, headers: headersOf(answer), body: bodyOf(answer.body) } });
      onStep();
      return answer;
    } catch (error) {
      finish({ problem: sentence(error) });
      return null;
    }
  }

  return (
    <section class="panel">
      <h2>Try it</h2>
      <p class="muted">Acquires a slot, renews it and releases it, with a key that is minted for this and revoked afterwards. It counts like any other call.</p>
      <div class="row">
        <Segments legend="Waiting" name="try-wait" options={WAITS} value={wait} onChange={setWait} />
        <span class="with-label">release <Segments legend="Release" name="try-hold" options={HOLDS} value={hold} onChange={setHold} /></span>
        <button type="button" class="primary" disabled={busy} onClick={cycle}>{busy ? "Running …" : "Run one cycle"}</button>
      </div>
      <ol class="steps" aria-live="polite">
        {steps.map((one, index) => (
          <li key={index}>
            <div><code>{one.name}</code>
              {one.answer ? <><b class={one.answer.status === 200 ? "good" : "bad"}>{one.answer.status}</b> <span class="muted">{span(one.answer.ms, { fine: true })}</span></> : !one.problem && <span class="muted">…</span>}
            </div>
            {one.problem && <p class="bad">{one.problem}</p>}
            {one.answer && <pre tabIndex={0}>{[...one.answer.headers, one.answer.body].join("\n")}</pre>}
          </li>
        ))}
      </ol>
    </section>
  );
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

const headersOf = ({ headers }: Answer) =>
  [...headers].filter(([name]) => name === "retry-after" || (name.startsWith("x-swarmvia-") && name !== "x-swarmvia-request-id")).map(([name, value]) => `${name}: ${value}`);

const bodyOf = (body: unknown) =>
  JSON.stringify(body, (field, value) => (field === "slotId" ? `${String(value).slice(0, 6)}…` : value));
