// A new source: its name and its settings, which the API checks.

import { useState } from "preact/hooks";
import { admin, pool, Refusal, sentence } from "../api";
import { go, hrefOf, SOURCES_HREF } from "../route";
import type { Source } from "../types";
import { Fields } from "../settings/fields";
import { Field } from "../settings/field";
import { DEFAULTS, toSettings, type Edits } from "../settings/model";
import { Notice } from "../ui/notice";

export function CreateSource() {
  const [name, setName] = useState("");
  const [edits, setEdits] = useState<Edits>({});
  const [problem, setProblem] = useState<{ field?: string; message: string } | null>(null);
  const [busy, setBusy] = useState(false);

  async function submit(event: Event) {
    event.preventDefault();
    const wanted = name.trim();
    if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(wanted)) {
      return setProblem({ field: "source", message: "A name is a DNS label: lower-case letters, digits and inner hyphens, at most 63." });
    }
    setBusy(true);
    setProblem(null);
    try {
      const headers = { "If-None-Match": "*" };
      await admin<Source>("PUT", pool(wanted), { body: toSettings({ ...DEFAULTS, ...edits }), headers });
      return go(hrefOf(wanted));
    } catch (error) {
      if (error instanceof Refusal && error.status === 412) setProblem({ field: "source", message: `There is a source ${wanted} already; choose another name.` });
      else setProblem({ field: error instanceof Refusal ? error.field : undefined, message: sentence(error) });
    }
    setBusy(false);
  }

  return (
    <section class="page narrow">
      <p class="crumbs"><a href={SOURCES_HREF}>Sources</a></p>
      <h1>New source</h1>
      <form onSubmit={submit} method="post" noValidate>
        <div class="group">
          <Field path="source" label="Name" problem={problem} hint="Part of every address of this source. It can't be changed later.">
            {(attributes) => (
              <input {...attributes} class="name" value={name} autofocus maxLength={63} autocomplete="off" autocapitalize="none" spellcheck={false}
                onInput={(event) => setName(event.currentTarget.value)} />
            )}
          </Field>
        </div>
        <Fields values={{ ...DEFAULTS, ...edits }} problem={problem} onEdit={(path, value) => setEdits({ ...edits, [path]: value })} creating />
        {problem && <Notice kind="bad">{problem.message}</Notice>}
        <div class="actions">
          <a class="button" href={SOURCES_HREF}>Cancel</a>
          <button class="primary" disabled={busy}>{busy ? "Creating …" : "Create source"}</button>
        </div>
      </form>
    </section>
  );
}
