// Something that is read when a view opens, and again on demand or every now and then.
// While the page is hidden nothing is read.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { sentence } from "../api";

export interface Loaded<T> {
  value: T | null;
  problem: string;
  busy: boolean;
  reload: () => void;
}

/** `key` says what is read: another key, another reading. An `everyMs` of 0 reads once. */
export function useLoad<T>(key: string, read: () => Promise<T>, everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ key: string; value: T | null; problem: string }>({ key, value: null, problem: "" });
  const [busy, setBusy] = useState(false);
  const latest = useRef({ key, read });
  latest.current = { key, read };

  const waiting = useRef(false);
  const reload = useCallback(async () => {
    const asked = latest.current;
    waiting.current = true;
    setBusy(true);
    try {
      const value = await asked.read();
      if (latest.current.key === asked.key) setState({ key: asked.key, value, problem: "" });
    } catch (error) {
      if (latest.current.key === asked.key) {
        setState((before) => ({ key: asked.key, value: before.key === asked.key ? before.value : null, problem: sentence(error) }));
      }
    }
    waiting.current = false;
    setBusy(false);
  }, []);

  useEffect(() => {
    void reload();
    if (everyMs === 0) return;
    // A slow answer is waited for, not asked for again.
    const tick = () => document.visibilityState === "visible" && !waiting.current && void reload();
    const timer = setInterval(tick, everyMs);
    document.addEventListener("visibilitychange", tick);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }, [key, everyMs]);

  return { value: state.key === key ? state.value : null, problem: state.problem, busy, reload };
}
