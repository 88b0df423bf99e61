// The access log: every attempt to acquire. Outcome, key and request are sought by the service; what is only
// the beginning of an id, an address or a slot is sought here, in what was read.

import { useState } from "preact/hooks";
import { pool } from "../api";
import { count, DASH, moment, shortId, span, words } from "../format";
import type { Attempt } from "../types";
import { Notice } from "../ui/notice";
import { Table } from "../ui/table";
import { At } from "../ui/time";
import { usePages } from "./use-pages";

const OUTCOMES = [
  "granted", "no_free_slot", "queue_full", "rpm", "cooldown", "queue_timeout", "left",
  "unauthorized", "invalid_request", "request_timeout", "payload_too_large", "omitted",
];
const KEY_ID = /^[0-9a-f]{16}$/;
const REQUEST_ID = /^[0-9a-f]{32}$/;

export function Attempts({ name }: { name: string }) {
  const [outcome, setOutcome] = useState("");
  const [text, setText] = useState("");
  const [until, setUntil] = useState("");
  const sought = text.trim().toLowerCase();
  const exact = KEY_ID.test(sought) ? "keyId" : REQUEST_ID.test(sought) ? "requestId" : "";
  const prefix = exact ? "" : sought;
  const query = new URLSearchParams({ ...(outcome && { outcome }), ...(exact && { [exact]: sought }) });
  const matches = (entry: Attempt) =>
    prefix === "" || [entry.keyId, entry.ip, entry.requestId, entry.ref].some((part) => part?.toLowerCase().startsWith(prefix));
  const before = until && Number.isFinite(Date.parse(until)) ? String(Date.parse(until)) : "";
  const pages = usePages<Attempt>(pool(name, "log"), query.toString(), before, prefix, matches);

  return (
    <>
      <form class="row bottom" onSubmit={(event) => event.preventDefault()}>
        <div class="field">
          <label for="log-outcome">Outcome</label>
          <select id="log-outcome" value={outcome} onChange={(event) => setOutcome(event.currentTarget.value)}>
            <option value="">all</option>
            <option value="refused">all but granted</option>
            {OUTCOMES.map((one) => <option key={one} value={one}>{words(one)}</option>)}
          </select>
        </div>
        <div class="field">
          <label for="log-text">Key, address, slot or request</label>
          <input id="log-text" value={text} placeholder="how it begins" autocomplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
        </div>
        <div class="field">
          <label for="log-until">Before</label>
          <input id="log-until" type="datetime-local" step="1" value={until} onChange={(event) => setUntil(event.currentTarget.value)} />
        </div>
        <button type="button" onClick={pages.restart} disabled={pages.busy}>Refresh</button>
      </form>
      {pages.problem && <Notice kind="bad">{pages.problem}</Notice>}
      <Table caption="Attempts to acquire, newest first" columns={COLUMNS}
        empty={pages.busy ? "Reading …" : prefix ? "Nothing that was searched matches." : query.size ? "No such attempt." : "No attempt yet."}>
        {pages.matching.map((entry) => <Row key={entry.requestId ?? `${entry.at}-${entry.count}`} entry={entry} />)}
      </Table>
      <div class="paging">
        <span role="status">
          {prefix ? `${count(pages.matching.length)} of ${count(pages.searched)} searched` : count(pages.searched)}
          {pages.oldest !== null && `, back to ${moment(pages.oldest)}`}{pages.isComplete && pages.searched > 0 && ", all there is"}
        </span>
        <button type="button" disabled={pages.busy || pages.isComplete} onClick={pages.more}>{pages.busy ? "Reading …" : prefix ? "Search further" : "Older"}</button>
      </div>
    </>
  );
}

function Row({ entry }: { entry: Attempt }) {
  if (entry.outcome === "omitted") {
    return <tr><td><At at={entry.at} /></td><td colSpan={7} class="muted">{count(entry.count)} refusals without a good key were left out</td></tr>;
  }
  return (
    <tr>
      <td><At at={entry.at} /></td>
      <td><span class={`dot ${toneOf(entry)}`}>{words(entry.outcome)}</span></td>
      <td class="number">{entry.status}</td>
      <td class="number">{entry.queuedMs ? span(entry.queuedMs, { fine: true }) : DASH}</td>
      <td><code title={entry.keyId}>{entry.keyId ? shortId(entry.keyId) : DASH}</code></td>
      <td>{entry.ip ?? DASH}</td>
      <td class="number">{entry.ref ?? DASH}</td>
      <td class="minor"><code title={entry.requestId}>{shortId(entry.requestId ?? "")}</code></td>
    </tr>
  );
}

const toneOf = ({ outcome, status = 0 }: Attempt) =>
  outcome === "granted" ? "good" : outcome === "left" ? "" : status === 429 || status === 504 ? "warn" : "bad";

const COLUMNS = [
  { label: "When" },
  { label: "Outcome" },
  { label: "Status", number: true },
  { label: "Queued", number: true },
  { label: "Key" },
  { label: "Address" },
  { label: "Slot", number: true },
  { label: "Request", minor: true },
];
