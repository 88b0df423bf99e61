// The state of one source, read once a second while the page is seen, and its last quarter of an hour.
// One request a tick. When the service can't be reached the last state stays, with its age.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { admin, pool, Refusal, sentence } from "../api";
import type { Counters, Source } from "../types";

const TICK_MS = 1000;
const SLOWEST_TICK_MS = 5000;
const PATIENCE_MS = 5000;
export const HISTORY_MS = 15 * 60_000;

/** One tick, as it is drawn. `at` is a moment of the page's own steady clock. */
export interface Sample {
  at: number;
  inUse: number;
  limit: number;
  depth: number;
  counters: Partial<Counters> | undefined;
}

export interface Live {
  source: Source | null;
  /** Why the last reading failed; empty when it did not. */
  problem: string;
  /** The source is not there (any more). */
  gone: boolean;
  /** How old what is shown is. */
  ageMs: number;
  /** The service's clock now. */
  now: number;
  history: readonly Sample[];
  reload: () => Promise<void>;
}

interface Reading {
  source: Source | null;
  problem: string;
  gone: boolean;
  receivedAt: number;
}

export function useLive(name: string): Live {
  const [reading, setReading] = useState<Reading>({ source: null, problem: "", gone: false, receivedAt: 0 });
  const [, redraw] = useState({});
  const history = useRef<Sample[]>([]);

  const reload = useCallback(async () => {
    try {
      const source = await admin<Source>("GET", pool(name), { patienceMs: PATIENCE_MS });
      const receivedAt = performance.now();
      remember(history.current, source, receivedAt);
      setReading({ source, problem: "", gone: false, receivedAt });
    } catch (error) {
      const gone = error instanceof Refusal && error.status === 404;
      setReading((before) => ({ ...before, problem: sentence(error), gone }));
    }
  }, [name]);

  const failing = useRef(false);
  failing.current = reading.problem !== "";
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over = false;
    let pause = TICK_MS;
    async function tick() {
      clearTimeout(timer);
      const started = performance.now();
      await reload();
      if (over || document.visibilityState !== "visible") return;
      pause = failing.current ? Math.min(SLOWEST_TICK_MS, pause * 2) : TICK_MS;
      clearTimeout(timer);
      timer = setTimeout(tick, Math.max(100, pause - (performance.now() - started)));
    }
    const seen = () => (document.visibilityState === "visible" ? void tick() : clearTimeout(timer));
    document.addEventListener("visibilitychange", seen);
    void tick();
    // So that ages and countdowns move on without the service.
    const clock = setInterval(() => failing.current && redraw({}), TICK_MS);
    return () => {
      over = true;
      clearTimeout(timer);
      clearInterval(clock);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [reload]);

  const ageMs = reading.source ? performance.now() - reading.receivedAt : 0;
  const now = (reading.source?.state.at ?? Date.now()) + ageMs;
  return { source: reading.source, problem: reading.problem, gone: reading.gone, ageMs, now, history: history.current, reload };
}

function remember(history: Sample[], { state }: Source, at: number) {
  history.push({ at, inUse: state.inUse, limit: state.effectiveLimit, depth: state.queueDepth, counters: state.counters });
  const first = history.findIndex((sample) => at - sample.at <= HISTORY_MS);
  if (first > 0) history.splice(0, first);
}
