// The dialog before something that can't be undone: says what will follow, and has a name typed.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { sentence } from "../api";
import { Notice } from "./notice";

interface Props {
  title: string;
  /** What must be typed. */
  word: string;
  /** What the word is, such as "the name of the source". */
  what: string;
  action: string;
  children: ComponentChildren;
  /** Does it. What it throws is shown, and the dialog stays open. */
  onConfirm: () => Promise<void>;
  onClose: () => void;
}

export function Confirm({ title, word, what, action, children, onConfirm, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const id = useId();
  // Before anything is painted, so that what is typed at once is typed into it.
  useLayoutEffect(() => dialog.current?.showModal(), []);

  async function submit(event: Event) {
    event.preventDefault();
    if (typed.trim() !== word) return setProblem(`Type ${word} to go on.`);
    setBusy(true);
    setProblem("");
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      setProblem(sentence(error));
      setBusy(false);
    }
  }

  return (
    <dialog ref={dialog} aria-labelledby={`${id}-title`} onClose={onClose}>
      <form onSubmit={submit} method="post">
        <h2 id={`${id}-title`}>{title}</h2>
        <div class="prose">{children}</div>
        <label for={`${id}-word`}>To go on, type {what}: <code class="wrap">{word}</code></label>
        <input id={`${id}-word`} autocomplete="off" autocapitalize="none" spellcheck={false} autofocus value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)} />
        {problem && <Notice kind="bad">{problem}</Notice>}
        <div class="actions">
          <button type="button" onClick={onClose}>Cancel</button>
          <button class="danger" disabled={busy || typed.trim() !== word}>{busy ? "…" : action}</button>
        </div>
      </form>
    </dialog>
  );
}
