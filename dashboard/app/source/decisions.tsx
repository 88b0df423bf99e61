// Who was let in and who was not, and why: counters that the service keeps since the source was made.

import { count, DASH } from "../format";
import type { Counters } from "../types";
import { Table } from "../ui/table";
import type { Sample } from "./use-live";

const MINUTE_MS = 60_000;

/** In the order of the table. The words of attempts are those of the log. */
const ROWS: { counter: string; label: string; means: string; tone?: string }[] = [
  { counter: "granted", label: "Granted", means: "a slot was handed out", tone: "good" },
  { counter: "no_free_slot", label: "No free slot", means: "failed fast, all slots in use" },
  { counter: "queue_full", label: "Queue full", means: "would have waited, no place" },
  { counter: "rpm", label: "Requests per minute", means: "the gate of the minute was closed" },
  { counter: "cooldown", label: "Cool-down", means: "the upstream asked for quiet" },
  { counter: "queue_timeout", label: "Waited in vain", means: "no slot came within the wait" },
  { counter: "left", label: "Left", means: "the caller went away" },
  { counter: "unauthorized", label: "Unauthorized", means: "no good key, or shut out by a policy" },
  { counter: "released", label: "Released", means: "slots given back" },
  { counter: "expired", label: "Expired", means: "leases that ended unrenewed" },
  { counter: "throttled", label: "Throttled", means: "reports of throttling by the upstream", tone: "warn" },
];

const COLUMNS = [{ label: "Outcome" }, { label: "Last minute", number: true }, { label: "In all", number: true }, { label: "Meaning", minor: true }];

export function Decisions({ counters, history }: { counters: Partial<Counters> | undefined; history: readonly Sample[] }) {
  return (
    <section class="panel">
      <h2>Grants and refusals</h2>
      <Table caption="Grants and refusals by reason" columns={COLUMNS}>
        {ROWS.map(({ counter, label, means, tone }) => (
          <tr key={counter}>
            <th scope="row">{tone ? <span class={`dot ${tone}`}>{label}</span> : label}</th>
            <td class="number">{count(overLastMinute(counter, history))}</td>
            <td class="number">{count(valueOf(counters, counter))}</td>
            <td class="minor muted">{means}</td>
          </tr>
        ))}
      </Table>
      <p class="muted small">
        {counters ? "In all is since the source was made; the last minute is as far as this page has seen it." : `This service does not report these counts, so they show as ${DASH}. The log has every attempt.`}
      </p>
    </section>
  );
}

/** How much a counter grew in the last minute that was seen. Undefined where it is not reported. */
export function overLastMinute(counter: string, history: readonly Sample[]): number | undefined {
  const last = history.at(-1);
  if (!last || valueOf(last.counters, counter) === undefined) return undefined;
  let grown = 0;
  let before: number | undefined;
  for (const sample of history) {
    if (last.at - sample.at > MINUTE_MS) continue;
    const value = valueOf(sample.counters, counter);
    if (value === undefined) continue;
    // Less than before: it was cut off, and counts on from what it had written down.
    if (before !== undefined) grown += Math.max(0, value - before);
    before = value;
  }
  return grown;
}

/** A counter by its name, wherever it stands. Undefined where the service doesn't send it. */
function valueOf(counters: Partial<Counters> | undefined, counter: string): number | undefined {
  return { ...counters?.acquires, released: counters?.released, expired: counters?.expired, throttled: counters?.throttled }[counter];
}
