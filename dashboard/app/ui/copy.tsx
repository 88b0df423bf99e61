// A button that copies a text. Without the clipboard (a page on plain http) it says so.

import { useEffect, useState } from "preact/hooks";

const SHOWN_MS = 2000;

export function Copy({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState("");
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [done]);

  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      setDone("Copied");
    } catch {
      setDone("Select and copy it by hand");
    }
  }

  return (
    <button type="button" class="quiet copy" onClick={copy} aria-label={`Copy ${what}`}>
      <span aria-live="polite">{done || "Copy"}</span>
    </button>
  );
}
