// A log, newest first, read page after page. What the API can't filter is filtered here: pages are read until
// enough entries match, within bounds, and what was searched is told.

import { useEffect, useRef, useState } from "preact/hooks";
import { admin, sentence } from "../api";

const PAGE = 200;
const MOST_PAGES_A_SEARCH = 10;
const ENOUGH = 50;

export interface Pages<T> {
  matching: T[];
  /** How many entries were looked at, and how far back. */
  searched: number;
  oldest: number | null;
  isComplete: boolean;
  busy: boolean;
  problem: string;
  more: () => void;
  restart: () => void;
}

/** `query`: what the service filters by. `before`: a moment to begin at, or nothing for now. `filter` names what `matches` asks for. */
export function usePages<T extends { at: number }>(path: string, query: string, before: string, filter: string, matches: (entry: T) => boolean): Pages<T> {
  const [entries, setEntries] = useState<T[]>([]);
  const [next, setNext] = useState<string | null | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const round = useRef(0);

  async function read(from: T[], cursor: string | null | undefined) {
    const mine = ++round.current;
    setBusy(true);
    setProblem("");
    let [all, place] = [from, cursor];
    const wanted = from.filter(matches).length + ENOUGH;
    try {
      for (let page = 0; page < MOST_PAGES_A_SEARCH && place !== null; page += 1) {
        const start = place === undefined ? before : place;
        const answer = await admin<{ entries: T[]; next: string | null }>("GET", `${path}?limit=${PAGE}${query && `&${query}`}${start && `&before=${start}`}`);
        if (mine !== round.current) return;
        [all, place] = [[...all, ...answer.entries], answer.next];
        setEntries(all);
        setNext(place);
        if (all.filter(matches).length >= wanted) break;
      }
    } catch (error) {
      if (mine === round.current) setProblem(sentence(error));
    }
    if (mine === round.current) setBusy(false);
  }

  const restart = () => {
    setEntries([]);
    void read([], undefined);
  };
  useEffect(restart, [path, query, before]);
  // A narrower filter may leave too few of what is here.
  useEffect(() => {
    if (filter !== "" && next && entries.filter(matches).length < ENOUGH) void read(entries, next);
  }, [filter]);

  return {
    matching: entries.filter(matches), searched: entries.length, oldest: entries.at(-1)?.at ?? null,
    isComplete: next === null, busy, problem, restart, more: () => void read(entries, next),
  };
}
