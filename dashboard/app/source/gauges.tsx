// The numbers at the top: slots, queue, requests per minute, cool-down, throttled share.

import type { ComponentChildren } from "preact";
import { count, DASH, share, span } from "../format";
import { hrefOf } from "../route";
import type { Source } from "../types";
import { Level } from "../ui/level";
import { overLastMinute } from "./decisions";
import type { Sample } from "./use-live";

export function Gauges({ source: { source: name, settings, state }, now, history }: { source: Source; now: number; history: readonly Sample[] }) {
  const over = state.inUse - state.effectiveLimit;
  const cooling = state.cooldownUntil !== null && state.cooldownUntil > now;
  const { rpm } = state;
  const released = overLastMinute("released", history);
  const throttled = overLastMinute("throttled", history);
  return (
    <dl class="gauges">
      <Gauge label="Slots in use" value={count(state.inUse)} of={`of ${count(state.effectiveLimit)}`} tone={over >= 0 ? "warn" : ""}
        note={over > 0 ? `${count(over)} over the limit: it waits for releases` : `${count(state.remainingSlots)} free${state.effectiveLimit !== settings.concurrency.limit ? `, ${count(settings.concurrency.limit)} configured` : ""}`}>
        <Level value={state.inUse} of={state.effectiveLimit} tone={over >= 0 ? "warn" : "use"} />
      </Gauge>
      <Gauge label="Waiting" value={count(state.queueDepth)} of={`of ${count(settings.queue.maxDepth)}`} tone={state.queueDepth > 0 ? "warn" : ""}
        note={`for ${span(settings.queue.timeoutMs)} at most`}>
        <Level value={state.queueDepth} of={settings.queue.maxDepth} tone="warn" />
      </Gauge>
      <Gauge label="Grants in 60 s" value={rpm ? count(rpm.used) : DASH} of={rpm ? `of ${count(rpm.limit)}` : ""} tone={rpm?.remaining === 0 ? "warn" : ""}
        note={rpm ? (rpm.opensAt !== null ? `opens in ${span(rpm.opensAt - now)}` : `${count(rpm.remaining)} left`) : "no limit per minute"}>
        {rpm && <Level value={rpm.used} of={rpm.limit} tone={rpm.remaining === 0 ? "warn" : "use"} />}
      </Gauge>
      <Gauge label="Cool-down" value={cooling ? span(state.cooldownUntil! - now) : "none"} tone={cooling ? "warn" : ""}
        note={cooling ? <>until grants go on; <a href={hrefOf(name, "learning")}>why, and how to end it</a></> : "the gate is open"} />
      <Gauge label="Throttled" value={share(throttled === undefined || !released ? null : throttled / released)}
        note={throttled === undefined ? "not counted by this service" : "of releases in 60 s"} />
    </dl>
  );
}

interface GaugeProps {
  label: string;
  value: string;
  of?: string;
  note: ComponentChildren;
  tone?: string;
  children?: ComponentChildren;
}

function Gauge({ label, value, of, note, tone = "", children }: GaugeProps) {
  return (
    <div class="gauge">
      <dt>{label}</dt>
      <dd>
        <span class={`figure ${tone}`}>{value}</span> {of && <span class="muted">{of}</span>}
        {children}
        <span class="note">{note}</span>
      </dd>
    </div>
  );
}
