// All sources, with the line of state that each last pushed.

import { useState } from "preact/hooks";
import { admin } from "../api";
import { count, share, span } from "../format";
import { hrefOf, NEW_HREF } from "../route";
import type { ListedSource, Summary } from "../types";
import { Level } from "../ui/level";
import { Notice } from "../ui/notice";
import { Table } from "../ui/table";
import { useLoad } from "../ui/use-load";

const PAGE = 50;
const EVERY_MS = 10_000;

interface Page {
  pools: ListedSource[];
  next: string | null;
}

export function Sources() {
  // Pages are walked forwards; the way back is the list of where each began.
  const [starts, setStarts] = useState<string[]>([""]);
  const after = starts.at(-1)!;
  const path = `/pools?limit=${PAGE}${after && `&after=${after}`}`;
  const list = useLoad(path, () => admin<Page>("GET", path), EVERY_MS);
  const pools = list.value?.pools ?? [];
  const next = list.value?.next;

  return (
    <section class="page">
      <div class="heading">
        <h1>Sources</h1>
        <a class="button primary" href={NEW_HREF}>New source</a>
      </div>
      {list.problem && <Notice kind="bad">{list.problem}{list.value ? " What is shown is what was last read." : ""}</Notice>}
      {!list.value && !list.problem && <p class="empty">Reading …</p>}
      {list.value && (
        <Table caption="Sources" columns={COLUMNS}
          empty={<>No source yet. A source is one upstream API that is protected: <a href={NEW_HREF}>create the first</a>.</>}>
          {pools.map((listed) => <Row key={listed.source} listed={listed} />)}
        </Table>
      )}
      {(starts.length > 1 || next) && (
        <div class="paging">
          <button type="button" disabled={starts.length === 1} onClick={() => setStarts(starts.slice(0, -1))}>Previous</button>
          <span>Page {count(starts.length)}</span>
          <button type="button" disabled={!next} onClick={() => next && setStarts([...starts, next])}>Next</button>
        </div>
      )}
      {pools.length > 0 && <p class="muted small">Sources push their line at most every 15 s; open one to see it live. Throttled is the share of all calls since the source was made.</p>}
    </section>
  );
}

const COLUMNS = [
  { label: "Source" },
  { label: "In use", number: true },
  { label: "Limit in force", number: true },
  { label: "Waiting", number: true },
  { label: "Throttled", number: true },
  { label: "As of", number: true, minor: true },
];

function Row({ listed }: { listed: ListedSource }) {
  const { source, summary } = listed;
  const full = summary !== null && summary.inUse >= summary.effectiveLimit;
  return (
    <tr>
      <th scope="row"><a class="name" href={hrefOf(source)}>{source}</a></th>
      <td class="number">
        {summary && <Level value={summary.inUse} of={summary.effectiveLimit} tone={full ? "warn" : "use"} />}
        <span class="amount">{count(summary?.inUse)}</span>
      </td>
      <td class="number">{count(summary?.effectiveLimit)}</td>
      <td class={`number ${summary?.queueDepth ? "warn" : ""}`}>{count(summary?.queueDepth)}</td>
      <td class="number">{share(throttledShare(summary))}</td>
      <td class="number minor muted">{summary ? `${span(Date.now() - summary.at)} ago` : "never"}</td>
    </tr>
  );
}

/** Of the calls that were released, how many reports told of throttling. Null where it isn't counted. */
function throttledShare(summary: Summary | null): number | null {
  const { throttled, released } = summary?.counters ?? {};
  return throttled === undefined || !released ? null : throttled / released;
}
