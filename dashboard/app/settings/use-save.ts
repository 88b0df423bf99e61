// Edits over the settings that stand, and how they are saved: with If-Match, so that nobody's change is
// overwritten. When the settings were changed elsewhere the edits stay, and lie over the new ones.

import { useState } from "preact/hooks";
import { admin, pool, Refusal, sentence } from "../api";
import type { Live } from "../source/use-live";
import type { Source } from "../types";
import type { Problem } from "./field";
import type { Edits, Value, Values } from "./model";

export interface Saving {
  values: Values;
  isEdited: boolean;
  busy: boolean;
  saved: boolean;
  problem: Problem | null;
  /** What stands now and did not when the editing began, as `field: theirs`. */
  conflict: string[] | null;
  edit: (path: string, value: Value) => void;
  discard: () => void;
  accept: () => void;
  save: (event: Event) => Promise<void>;
}

export function useSave(live: Live, toValues: (source: Source) => Values, toBody: (values: Values, source: Source) => unknown): Saving {
  const current = live.source!;
  const [base, setBase] = useState(current);
  const [edits, setEdits] = useState<Edits>({});
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const [saved, setSaved] = useState(false);

  const isEdited = Object.keys(edits).length > 0;
  const changed = current.version !== base.version;
  if (changed && !isEdited && !busy) setBase(current);

  const before = toValues(base);
  const values = { ...before, ...edits };

  async function save(event: Event) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    setSaved(false);
    try {
      // An empty one would guard nothing.
      if (!base.version) throw new Error("the version isn't known");
      const source = await admin<Source>("PUT", pool(base.source), { body: toBody(values, base), headers: { "If-Match": `"${base.version}"` } });
      setBase(source);
      setEdits({});
      setSaved(true);
    } catch (error) {
      const conflict = error instanceof Refusal && error.status === 412;
      if (!conflict) setProblem({ field: error instanceof Refusal ? error.field : undefined, message: sentence(error) });
    }
    await live.reload();
    setBusy(false);
  }

  return {
    values, isEdited, busy, saved, problem, save,
    conflict: changed && isEdited && !busy ? differences(before, toValues(current)) : null,
    edit: (path, value) => {
      setSaved(false);
      const { [path]: _, ...others } = edits;
      setEdits(before[path] === value ? others : { ...others, [path]: value });
    },
    discard: () => {
      setEdits({});
      setProblem(null);
    },
    accept: () => {
      setBase(current);
      setProblem(null);
    },
  };
}

function differences(mine: Values, theirs: Values): string[] {
  return Object.keys(theirs)
    .filter((path) => theirs[path] !== mine[path])
    .map((path) => `${path}: ${theirs[path] === "" ? "its default" : String(theirs[path])}`);
}
