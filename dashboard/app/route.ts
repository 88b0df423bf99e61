// Which view is shown: the part of the address after `#`, which never leaves the browser.

import { useEffect, useState } from "preact/hooks";

export const TABS = ["overview", "access", "learning", "log", "settings"] as const;
export type Tab = (typeof TABS)[number];

export type Route =
  | { view: "sources" }
  | { view: "new" }
  | { view: "source"; source: string; tab: Tab }
  | { view: "unknown" };

export const hrefOf = (source: string, tab: Tab = "overview") => `#/sources/${source}/${tab}`;
export const SOURCES_HREF = "#/sources";
export const NEW_HREF = "#/new";

export function go(href: string) {
  location.hash = href;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}

export function parse(hash: string): Route {
  const [first, source, tab, ...more] = hash.replace(/^#?\/?/, "").split("/");
  if (!first || (first === "sources" && !source)) return { view: "sources" };
  if (first === "new" && !source) return { view: "new" };
  const known = TABS.find((name) => name === (tab || "overview"));
  if (first !== "sources" || !source || !known || more.length > 0) return { view: "unknown" };
  return /^[a-z0-9-]{1,63}$/.test(source) ? { view: "source", source, tab: known } : { view: "unknown" };
}
