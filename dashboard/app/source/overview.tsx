// What a source does now: its gauges, its last minutes, who was let in and who was not, who holds what.

import { useState } from "preact/hooks";
import { Chart, type Point } from "../ui/chart";
import { Segments } from "../ui/segments";
import { Decisions } from "./decisions";
import { Examples } from "./examples";
import { Gauges } from "./gauges";
import { Slots } from "./slots";
import { TryIt } from "./try-it";
import type { TabProps } from "./view";

const WINDOWS = [
  { value: "1", label: "1 min" },
  { value: "5", label: "5 min" },
  { value: "15", label: "15 min" },
] as const;
type Minutes = (typeof WINDOWS)[number]["value"];

export function Overview({ name, live }: TabProps) {
  const [minutes, setMinutes] = useState<Minutes>("5");
  const [run, setRun] = useState(0);
  const source = live.source!;
  const shared = { now: performance.now(), windowMs: Number(minutes) * 60_000 };
  const points = (values: (sample: (typeof live.history)[number]) => Point["values"]): Point[] =>
    live.history.map((sample) => ({ at: sample.at, values: values(sample) }));

  return (
    <div class={live.problem ? "stale" : ""}>
      <Gauges source={source} now={live.now} history={live.history} />
      <section class="panel">
        <div class="heading">
          <h2>The last minutes</h2>
          <Segments legend="Time shown" name="window" options={WINDOWS} value={minutes} onChange={setMinutes} />
        </div>
        <Chart title="Slots" {...shared} height={170} points={points((sample) => [sample.inUse, sample.limit])}
          series={[{ label: "in use", look: "use", filled: true }, { label: "limit in force", look: "limit" }]} />
        <Chart title="Queue" {...shared} height={100} points={points((sample) => [sample.depth])}
          series={[{ label: "waiting", look: "wait", filled: true }]} />
        <p class="muted small">Since this page was opened; once a second, paused while it is hidden.</p>
      </section>
      <Decisions counters={source.state.counters} history={live.history} />
      <Slots name={name} live={live} trigger={run} />
      <TryIt name={name} settings={source.settings} onStep={() => setRun((before) => before + 1)} />
      <Examples name={name} />
    </div>
  );
}
