// A chart of the last minutes: lines in steps, since what they show changes in steps. What it says in
// words stands in its legend, which follows the pointer; a screen reader gets that and not the drawing.

import { useEffect, useRef, useState } from "preact/hooks";
import { count, span } from "../format";

export interface Point {
  at: number;
  values: (number | undefined)[];
}

export interface Series {
  label: string;
  /** A class of the style sheet, for the colour. */
  look: string;
  filled?: boolean;
}

interface Props {
  title: string;
  series: Series[];
  points: Point[];
  now: number;
  windowMs: number;
  height?: number;
}

const EDGE = { left: 52, right: 8, top: 8, bottom: 20 };
/** A pause longer than this is a gap, not a line. */
const GAP_MS = 12_000;
/** The newest point is "now" for so long. */
const LATE_MS = 3000;
const STEPS = [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10];

export function Chart({ title, series, points, now, windowMs, height = 150 }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const [pointer, setPointer] = useState<number | null>(null);

  const seen = points.filter((point) => now - point.at <= windowMs + 2000);
  const top = niceTop(Math.max(1, ...seen.flatMap((point) => point.values.map((value) => value ?? 0))));
  const x = (at: number) => EDGE.left + (width - EDGE.left - EDGE.right) * (1 - (now - at) / windowMs);
  const y = (value: number) => EDGE.top + (height - EDGE.top - EDGE.bottom) * (1 - value / top);
  const pointed = pointer === null ? undefined : nearest(seen, now - windowMs * (1 - (pointer - EDGE.left) / (width - EDGE.left - EDGE.right)));
  const shown = pointed ?? seen.at(-1);

  return (
    <figure class="chart">
      <figcaption>
        <b>{title}</b>
        {series.map(({ label, look }, index) => (
          <span key={label} class={`key ${look}`}>{label} <output>{count(shown?.values[index])}</output></span>
        ))}
        <span class="when">{shown && (pointed || now - shown.at > LATE_MS) ? `${span(now - shown.at)} ago` : "now"}</span>
      </figcaption>
      <div ref={frame} style={{ height: `${height}px` }}>
        <svg width={width} height={height} aria-hidden="true"
          onPointerMove={(event) => setPointer(event.offsetX)} onPointerLeave={() => setPointer(null)}>
          {[0, top / 2, top].map((value) => (
            <g key={value} class="grid">
              <line x1={EDGE.left} x2={width - EDGE.right} y1={y(value)} y2={y(value)} />
              {Number.isInteger(value) && <text x={EDGE.left - 8} y={y(value) + 4} text-anchor="end">{count(value)}</text>}
            </g>
          ))}
          {[1, 0.5, 0].map((part) => (
            <text key={part} class="grid" x={x(now - part * windowMs)} y={height - 4} text-anchor={part === 1 ? "start" : part === 0 ? "end" : "middle"}>
              {part === 0 ? "now" : `−${span(part * windowMs).replace(" min 00 s", " min").replace(" min 30 s", ".5 min")}`}
            </text>
          ))}
          <svg x={EDGE.left} y={0} width={Math.max(0, width - EDGE.left - EDGE.right)} height={height}>
            <g transform={`translate(${-EDGE.left} 0)`}>
              {series.map(({ label, look, filled }, index) => {
                const runs = steps(seen, index, now, x, y);
                return (
                  <g key={label} class={`series ${look}`}>
                    {filled && runs.map((run) => <path key={run.start} class="area" d={`${run.path} V${y(0)} H${run.start} Z`} />)}
                    {runs.map((run) => <path key={run.start} class="line" d={run.path} />)}
                  </g>
                );
              })}
              {pointed && <line class="pointer" x1={x(pointed.at)} x2={x(pointed.at)} y1={EDGE.top} y2={height - EDGE.bottom} />}
            </g>
          </svg>
        </svg>
      </div>
    </figure>
  );
}

/** The line of one series, in pieces where ticks are missing. The last piece goes on until now. */
function steps(points: Point[], index: number, now: number, x: (at: number) => number, y: (value: number) => number) {
  const runs: { start: number; path: string; end: number }[] = [];
  for (const point of points) {
    const value = point.values[index];
    if (value === undefined) continue;
    const [px, py] = [round(x(point.at)), round(y(value))];
    const run = runs.at(-1);
    if (run && point.at - run.end <= GAP_MS) {
      run.path += ` H${px} V${py}`;
      run.end = point.at;
    } else {
      runs.push({ start: px, path: `M${px} ${py}`, end: point.at });
    }
  }
  const last = runs.at(-1);
  if (last && now - last.end <= 2000) last.path += ` H${round(x(now))}`;
  return runs;
}

const round = (value: number) => Math.round(value * 10) / 10;

/** A round number with some room above `most`. */
export function niceTop(most: number): number {
  const wanted = most * 1.05;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = STEPS.find((candidate) => candidate * power >= wanted) ?? 10;
  return Math.max(2, Math.ceil(step * power));
}

function nearest(points: Point[], at: number): Point | undefined {
  let best: Point | undefined;
  for (const point of points) {
    if (!best || Math.abs(point.at - at) < Math.abs(best.at - at)) best = point;
  }
  return best;
}

function useWidth(frame: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(200, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}
