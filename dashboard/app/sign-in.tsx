// Asks for the admin token, and tries it before it is kept.

import { useState } from "preact/hooks";
import { exchange, sentence } from "./api";
import { signIn } from "./session";
import { Notice } from "./ui/notice";

export function SignIn({ refused }: { refused: boolean }) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(refused ? "The admin token is no longer accepted. Sign in again." : "");

  async function submit(event: Event) {
    event.preventDefault();
    const tried = token.trim();
    if (!tried) return setProblem("Enter the admin token.");
    // Else the browser refuses the header, and says so of the connection.
    if (!/^[!-~]+$/.test(tried)) return setProblem("An admin token has neither spaces nor letters with accents.");
    setBusy(true);
    setProblem("");
    try {
      const { status, body } = await exchange("GET", "/pools?limit=1", { headers: { Authorization: `Bearer ${tried}` } });
      if (status === 200) return signIn(tried);
      setProblem(status === 401 ? "This is not the admin token of this deployment." : body.message);
    } catch (error) {
      setProblem(`${sentence(error)} Try again.`);
    }
    setBusy(false);
  }

  return (
    <section class="page narrow sign-in">
      <h1>Sign in</h1>
      <p class="muted">With the admin token of this deployment. It stays in this tab until you sign out or close it.</p>
      <form onSubmit={submit} method="post">
        <label for="token">Admin token</label>
        <input id="token" type="password" autocomplete="current-password" spellcheck={false} autofocus value={token}
          aria-describedby={problem ? "token-problem" : undefined} aria-invalid={problem ? true : undefined}
          onInput={(event) => setToken(event.currentTarget.value)} />
        {problem && <Notice id="token-problem" kind="bad">{problem}</Notice>}
        <div class="actions"><button class="primary" disabled={busy}>{busy ? "Trying …" : "Sign in"}</button></div>
      </form>
      <p class="muted small">In a local run it is in <code>.dev.vars</code>, under <code>ADMIN_TOKEN</code>.</p>
    </section>
  );
}
