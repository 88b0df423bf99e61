// Whatever an answer holds, as a list of terms: for parts of the API that may grow.

import { DASH, count, moment, span, words } from "../format";

export function Data({ value }: { value: unknown }) {
  if (!isObject(value)) return <p>{plain("", value)}</p>;
  return (
    <dl class="data">
      {Object.entries(value).map(([name, part]) => (
        <div key={name}>
          <dt>{labelOf(name)}</dt>
          <dd>{isObject(part) ? <Data value={part} /> : plain(name, part)}</dd>
        </div>
      ))}
    </dl>
  );
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;

/** Where a name alone says too little. */
const LABELS: Record<string, string> = { ref: "from the report of slot", at: "reported", closesGateForMs: "closes the gate for" };

/** Spans carry their unit with them. */
export const labelOf = (name: string) => LABELS[name] ?? words(name.replace(/Ms$/, ""));

/** A span by its name, a moment by its size, anything else as it is. */
export function plain(name: string, value: unknown): string {
  if (value === null || value === undefined) return DASH;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") {
    if (name.endsWith("Ms")) return value === 0 ? "0 ms" : span(value, { fine: true });
    if (value > 1e12) return moment(value);
    return Number.isInteger(value) ? count(value) : String(value);
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}
