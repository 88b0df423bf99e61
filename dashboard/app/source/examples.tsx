// How to call this source, ready to paste.

import { useState } from "preact/hooks";
import { hrefOf } from "../route";
import { Copy } from "../ui/copy";
import { Segments } from "../ui/segments";
import { snippets, type Language } from "./snippets";

const LANGUAGES = [
  { value: "curl", label: "curl" },
  { value: "javascript", label: "JavaScript" },
  { value: "python", label: "Python" },
  { value: "rust", label: "Rust" },
] as const;
const WAITS = [{ value: "fast", label: "Fail fast" }, { value: "wait", label: "Wait" }] as const;

export function Examples({ name }: { name: string }) {
  const [language, setLanguage] = useState<Language>("curl");
  const [waits, setWaits] = useState<"fast" | "wait">("wait");
  return (
    <section class="panel">
      <h2>Examples</h2>
      <p class="muted"><code>ACCESS_KEY</code> is a key of this source: <a href={hrefOf(name, "access")}>mint one</a>. <code>SLOT</code> is the <code>slotId</code> of the answer.</p>
      <div class="row">
        <Segments legend="Language" name="language" options={LANGUAGES} value={language} onChange={setLanguage} />
        <Segments legend="Waiting" name="example-wait" options={WAITS} value={waits} onChange={setWaits} />
      </div>
      {snippets(language, location.origin, name, waits === "wait").map(({ title, code }) => (
        <div key={title} class="snippet">
          <div class="heading"><h3>{title}</h3><Copy text={code} what={title.split(",")[0]!.toLowerCase()} /></div>
          <pre tabIndex={0} aria-label={title}><code>{code}</code></pre>
        </div>
      ))}
    </section>
  );
}
