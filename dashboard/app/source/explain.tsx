// A box to paste an upstream's answer into, and how this source would read it. Nothing is changed.

import { useState } from "preact/hooks";
import { admin, pool, Refusal, sentence } from "../api";
import { Notice } from "../ui/notice";
import { Explained } from "./explained";
import { parseHead } from "./headers";

const SAMPLE = "HTTP/1.1 429 Too Many Requests\nRetry-After: 2\nX-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 12";

export function Explain({ name }: { name: string }) {
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState<Record<string, unknown> | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);

  async function submit(event: Event) {
    event.preventDefault();
    const { status, headers } = parseHead(text);
    setAnswer(null);
    if (status === undefined && Object.keys(headers).length === 0) return setProblem("Paste at least one header, such as Retry-After: 2.");
    setBusy(true);
    setProblem("");
    try {
      setAnswer(await admin("POST", pool(name, "explain"), { body: { status, headers } }));
    } catch (error) {
      const missing = error instanceof Refusal && (error.status === 404 || error.status === 405);
      setProblem(missing ? "This service can't explain reports yet." : sentence(error));
    }
    setBusy(false);
  }

  return (
    <section class="panel">
      <h2>Explain an answer</h2>
      <p class="muted" id="explain-hint">Paste the head of an upstream's answer, status line and headers, as <code>curl -i</code> shows it. Nothing is changed by it.</p>
      <form onSubmit={submit} method="post">
        <label for="explain" class="unseen">Status line and headers</label>
        <textarea id="explain" rows={7} class="mono" value={text} placeholder={SAMPLE} spellcheck={false} aria-describedby="explain-hint"
          onInput={(event) => setText(event.currentTarget.value)} />
        <div class="actions">
          <button type="button" onClick={() => setText(SAMPLE)}>Fill in a sample</button>
          <button class="primary" disabled={busy}>{busy ? "Asking …" : "Explain"}</button>
        </div>
      </form>
      {problem && <Notice kind="bad">{problem}</Notice>}
      {answer && <Explained answer={answer} />}
    </section>
  );
}
