// Settings as a form holds them: one text or tick per field, by the path that the API gives it. An
// empty text is the field's default. What is no number goes out as it was typed, so that it is the API
// that says what is wrong with it.

import type { Access, Settings } from "../types";

export type Value = string | boolean;
export type Values = Record<string, Value>;
export type Edits = Values;

const TEXTS = [
  "concurrency.limit", "concurrency.min", "concurrency.max", "rpm.limit", "queue.maxDepth", "queue.timeoutMs",
  "lease.termMs", "lease.renewIntervalMs", "lease.requestTimeoutMs", "log.keep", "location",
];
const TICKS = ["concurrency.adaptive", "rpm.adaptive"];

/** A new source's form: everything by default. */
export const DEFAULTS: Values = { ...Object.fromEntries(TEXTS.map((path) => [path, ""])), ...Object.fromEntries(TICKS.map((path) => [path, false])) };

/** What stands for an empty field, given the others. */
export function placeholderOf(path: string, values: Values): string {
  const number = (name: string, otherwise: number) => Number(values[name] || otherwise);
  const term = number("lease.termMs", 30_000);
  switch (path) {
    case "concurrency.limit": return "10, the default";
    case "concurrency.min": return "1, the default";
    case "concurrency.max": return `${number("concurrency.limit", 10)}, the limit`;
    case "rpm.limit": return "none: no gate";
    case "queue.maxDepth": return "100, the default";
    case "queue.timeoutMs": return "30000, the default";
    case "lease.termMs": return "30000, the default";
    case "lease.renewIntervalMs": return `${Math.floor(term / 3)}, a third of the term`;
    case "lease.requestTimeoutMs": return `${Math.max(60_000, 2 * term)}, the default`;
    case "log.keep": return "10000, the default";
    default: return "";
  }
}

/** The form of settings that stand. What equals a default that follows from another field is left empty. */
export function toValues(settings: Settings): Values {
  const { concurrency, lease } = settings;
  const follows = (value: number, otherwise: number) => (value === otherwise ? "" : String(value));
  return {
    "concurrency.limit": String(concurrency.limit),
    "concurrency.adaptive": concurrency.adaptive,
    "concurrency.min": String(concurrency.min),
    "concurrency.max": follows(concurrency.max, concurrency.limit),
    "rpm.limit": settings.rpm.limit === null ? "" : String(settings.rpm.limit),
    "rpm.adaptive": settings.rpm.adaptive,
    "queue.maxDepth": String(settings.queue.maxDepth),
    "queue.timeoutMs": String(settings.queue.timeoutMs),
    "lease.termMs": String(lease.termMs),
    "lease.renewIntervalMs": follows(lease.renewIntervalMs, Math.floor(lease.termMs / 3)),
    "lease.requestTimeoutMs": follows(lease.requestTimeoutMs, Math.max(60_000, 2 * lease.termMs)),
    "log.keep": String(settings.log.keep),
    location: settings.location ?? "",
  };
}

/** What is sent. `access` has a form of its own. */
export function toSettings(values: Values, access?: Access | Record<string, unknown>): Record<string, unknown> {
  const settings: Record<string, any> = access ? { access } : {};
  for (const [path, value] of Object.entries(values)) {
    const sent = typeof value === "boolean" ? value : typed(value);
    if (sent === undefined) continue;
    const [part, field] = path.split(".") as [string, string?];
    if (field === undefined) settings[part] = sent;
    else (settings[part] ??= {})[field] = sent;
  }
  return settings;
}

function typed(text: string): number | string | undefined {
  const plain = text.trim();
  if (plain === "") return undefined;
  return /^-?\d+(\.\d+)?$/.test(plain) ? Number(plain) : plain;
}
