// The fields of a source's settings, in groups. Bounds are in the hints; the API holds them.

import { span } from "../format";
import { Field, type Problem } from "./field";
import { placeholderOf, type Value, type Values } from "./model";

interface Props {
  values: Values;
  problem: Problem | null;
  onEdit: (path: string, value: Value) => void;
  creating?: boolean;
}

const PLACES = {
  "": "Near the first caller",
  wnam: "Western North America", enam: "Eastern North America", sam: "South America", weur: "Western Europe",
  eeur: "Eastern Europe", apac: "Asia-Pacific", "apac-ne": "North-east Asia-Pacific", "apac-se": "South-east Asia-Pacific",
  oc: "Oceania", afr: "Africa", me: "Middle East",
};

export function Fields({ values, problem, onEdit, creating = false }: Props) {
  const number = (path: string, label: string, hint: string) => {
    const value = String(values[path] ?? "");
    const placeholder = placeholderOf(path, values);
    const read = path.endsWith("Ms") ? readable(value || placeholder) : "";
    return (
      <Field key={path} path={path} label={label} hint={hint} problem={problem}>
        {(attributes) => (
          <span class="unit">
            <input {...attributes} inputMode="numeric" autocomplete="off" value={value} placeholder={placeholder}
              onInput={(event) => onEdit(path, event.currentTarget.value)} />
            {read && <output>{read}</output>}
          </span>
        )}
      </Field>
    );
  };
  const tick = (path: string, label: string) => (
    <label class="tick"><input type="checkbox" checked={values[path] === true} onChange={(event) => onEdit(path, event.currentTarget.checked)} />{label}</label>
  );
  return (
    <>
      <fieldset class="group">
        <legend>Concurrency</legend>
        {number("concurrency.limit", "Limit", "Slots at once, 1 to 10,000. A lower limit takes no slot away.")}
        {tick("concurrency.adaptive", "Learn the limit from release reports")}
        {number("concurrency.min", "Lowest learned limit", "At most the limit.")}
        {number("concurrency.max", "Highest learned limit", "At least the limit, at most 10,000.")}
      </fieldset>
      <fieldset class="group">
        <legend>Requests per minute</legend>
        {number("rpm.limit", "Limit", "Grants in any 60 s, 1 to 1,000,000. Empty: no gate.")}
        {tick("rpm.adaptive", "Learn the limit from release reports")}
      </fieldset>
      <fieldset class="group">
        <legend>Queue</legend>
        {number("queue.maxDepth", "Places", "0 to 10,000.")}
        {number("queue.timeoutMs", "Longest wait, ms", "0 to 600,000. A caller's waitMs is cut to it.")}
      </fieldset>
      <fieldset class="group">
        <legend>Lease</legend>
        {number("lease.termMs", "Term, ms", "500 to 600,000. A slot that is not renewed is free after it.")}
        {number("lease.renewIntervalMs", "Renew every, ms", "Below the term.")}
        {number("lease.requestTimeoutMs", "Longest hold, ms", "From the term to 86,400,000.")}
      </fieldset>
      <fieldset class="group">
        <legend>Log and place</legend>
        {number("log.keep", "Attempts kept in the log", "100 to 100,000.")}
        <Field path="location" label="Place" problem={problem} hint={creating ? "Where Cloudflare should create the source." : "Counted when the source was created."}>
          {(attributes) => (
            <select {...attributes} value={String(values.location ?? "")} onChange={(event) => onEdit("location", event.currentTarget.value)}>
              {Object.entries(PLACES).map(([place, label]) => <option key={place} value={place}>{label}</option>)}
            </select>
          )}
        </Field>
      </fieldset>
    </>
  );
}

const readable = (text: string) => {
  const ms = Number.parseInt(text, 10);
  return Number.isFinite(ms) ? span(ms, { fine: ms < 1000 }) : "";
};
