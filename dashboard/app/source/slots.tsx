// Who holds what: a page of the slots in use, and the way to take one back.

import { useEffect, useState } from "preact/hooks";
import { admin, pool } from "../api";
import { count, shortId, shown, span } from "../format";
import type { Slot } from "../types";
import { Confirm } from "../ui/confirm";
import { Notice } from "../ui/notice";
import { Table } from "../ui/table";
import { At } from "../ui/time";
import { useLoad } from "../ui/use-load";
import type { Live } from "./use-live";

const PAGE = 50;
const EVERY_MS = 5000;

interface Props {
  name: string;
  live: Live;
  /** Read again whenever it changes. */
  trigger: number;
}

export function Slots({ name, live, trigger }: Props) {
  const [starts, setStarts] = useState<string[]>([""]);
  const [forced, setForced] = useState<Slot | null>(null);
  const after = starts.at(-1)!;
  const path = `${pool(name, "slots")}?limit=${PAGE}${after && `&after=${after}`}`;
  const list = useLoad(path, () => admin<{ slots: Slot[]; next: string | null }>("GET", path), EVERY_MS);
  useEffect(() => {
    if (trigger > 0) list.reload();
  }, [trigger]);

  const slots = list.value?.slots ?? [];
  const next = list.value?.next ?? null;
  const first = (starts.length - 1) * PAGE;

  return (
    <section class="panel">
      <div class="heading">
        <h2>Who holds what</h2>
        <button type="button" class="quiet" onClick={list.reload} disabled={list.busy}>Refresh</button>
      </div>
      <p class="muted small">A page of {PAGE}, read every 5 s.</p>
      {list.problem && !live.problem && <Notice kind="bad">{list.problem}</Notice>}
      <Table caption="Slots in use" columns={COLUMNS} empty={list.value ? "No slot is held." : "Reading …"}>
        {slots.map((slot) => (
          <tr key={slot.ref}>
            <th scope="row" class="steady">{slot.ref}</th>
            <td><span class="key-name" title={slot.keyId}>{slot.keyName ? shown(slot.keyName) : shortId(slot.keyId)}</span></td>
            <td class="number">{span(live.now - slot.since)}</td>
            <td class="number minor"><At at={slot.since} /></td>
            <td class="number">{span(slot.leaseDeadline - live.now)}</td>
            <td class="number minor">{span(slot.requestDeadline - live.now)}</td>
            <td class="act"><button type="button" class="quiet bad" aria-label={`Release slot ${slot.ref} by force`} onClick={() => setForced(slot)}>Release<span class="minor"> …</span></button></td>
          </tr>
        ))}
      </Table>
      {(starts.length > 1 || next) && (
        <div class="paging">
          <button type="button" disabled={starts.length === 1} onClick={() => setStarts(starts.slice(0, -1))}>Previous</button>
          <span>{count(first + 1)} to {count(first + slots.length)} of {count(Math.max(live.source!.state.inUse, first + slots.length))}</span>
          <button type="button" disabled={!next} onClick={() => next && setStarts([...starts, next])}>Next</button>
        </div>
      )}
      {forced && (
        <Confirm title={`Release slot ${forced.ref} by force`} word={forced.ref} what="the slot's number" action="Release it" onClose={() => setForced(null)}
          onConfirm={async () => {
            await admin("DELETE", pool(name, "slots", forced.ref));
            list.reload();
            await live.reload();
          }}>
          <p>The slot goes to whoever waits longest. Its holder isn't stopped: it learns at its next renewal, and until then both may call the upstream.</p>
        </Confirm>
      )}
    </section>
  );
}

const COLUMNS = [
  { label: "Slot" },
  { label: "Key" },
  { label: "Held for", number: true },
  { label: "Since", number: true, minor: true },
  { label: "Lease ends in", number: true },
  { label: "At the latest in", number: true, minor: true },
  { label: "Action", unseen: true },
];
