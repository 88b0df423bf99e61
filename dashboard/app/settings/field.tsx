// One field: its label, its control, its hint, and what the API says is wrong with it.

import type { JSX } from "preact";

export interface Problem {
  field?: string;
  message: string;
}

interface Attributes {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

interface Props {
  path: string;
  label: string;
  hint?: string;
  wide?: boolean;
  problem: Problem | null;
  children: (attributes: Attributes) => JSX.Element;
}

export function Field({ path, label, hint, wide, problem, children }: Props) {
  const id = `field-${path.replaceAll(".", "-")}`;
  const wrong = concerns(problem, path) ? problem!.message : "";
  const notes = [wrong && `${id}-wrong`, hint && `${id}-hint`].filter(Boolean).join(" ");
  return (
    <div class={`field ${wrong ? "wrong" : ""} ${wide ? "wide" : ""}`}>
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": notes || undefined, "aria-invalid": wrong ? true : undefined })}
      {wrong && <p id={`${id}-wrong`} class="wrong-note">{wrong}</p>}
      {hint && <p id={`${id}-hint`} class="hint">{hint}</p>}
    </div>
  );
}

/** Whether what the API refused is this field, or a part of it. */
export const concerns = (problem: Problem | null, path: string) =>
  problem?.field !== undefined && (problem.field === path || problem.field.startsWith(`${path}.`) || problem.field.startsWith(`${path}[`));
