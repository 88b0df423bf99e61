// Mints a key and shows it, this once.

import { useState } from "preact/hooks";
import { admin, pool, Refusal, sentence } from "../api";
import { fullMoment } from "../format";
import { Field, type Problem } from "../settings/field";
import type { MintedKey } from "../types";
import { Copy } from "../ui/copy";
import { Notice } from "../ui/notice";

const HOUR_MS = 3_600_000;
const LIVES = [
  { ms: HOUR_MS, label: "1 hour" },
  { ms: 24 * HOUR_MS, label: "1 day" },
  { ms: 7 * 24 * HOUR_MS, label: "7 days" },
  { ms: 30 * 24 * HOUR_MS, label: "30 days" },
];

export function Mint({ name, onMinted }: { name: string; onMinted: () => void }) {
  const [label, setLabel] = useState("");
  const [ttlMs, setTtl] = useState(HOUR_MS);
  const [minted, setMinted] = useState<MintedKey | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);

  async function submit(event: Event) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      setMinted(await admin<MintedKey>("POST", pool(name, "keys"), { body: { ttlMs, ...(label.trim() && { name: label.trim() }) } }));
      setLabel("");
      onMinted();
    } catch (error) {
      setProblem({ field: error instanceof Refusal ? error.field : undefined, message: sentence(error) });
    }
    setBusy(false);
  }

  return (
    <>
      <form class="row bottom" onSubmit={submit} method="post" noValidate>
        <Field path="name" label="Name of the worker" problem={problem}>
          {(attributes) => <input {...attributes} value={label} placeholder="worker-7" autocomplete="off" onInput={(event) => setLabel(event.currentTarget.value)} />}
        </Field>
        <Field path="ttlMs" label="Each key lives for" problem={problem}>
          {(attributes) => (
            <select {...attributes} value={String(ttlMs)} onChange={(event) => setTtl(Number(event.currentTarget.value))}>
              {LIVES.map(({ ms, label }) => <option key={ms} value={ms}>{label}</option>)}
            </select>
          )}
        </Field>
        <button class="primary" disabled={busy}>{busy ? "Minting …" : "Mint a key"}</button>
      </form>
      {problem && <Notice kind="bad">{problem.message}</Notice>}
      {minted && (
        <Notice kind="good">
          <p>Copy these now: they are shown this once. The key is good until {fullMoment(minted.expiresAt)}.</p>
          <Secret label="Access key" text={minted.accessKey} />
          <Secret label="Refresh token" text={minted.refreshToken} />
          <div class="actions"><button type="button" onClick={() => setMinted(null)}>I have copied them</button></div>
        </Notice>
      )}
    </>
  );
}

function Secret({ label, text }: { label: string; text: string }) {
  return (
    <div class="secret">
      <span>{label}</span>
      <code>{text}</code>
      <Copy text={text} what={label.toLowerCase()} />
    </div>
  );
}
