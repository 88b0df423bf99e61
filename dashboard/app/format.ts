// Numbers, spans and moments as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dated = new Intl.DateTimeFormat("en-GB", {
  day: "2-digit", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

/** What stands where something is not known. */
export const DASH = "—";

export const count = (value: number | null | undefined) => (value === null || value === undefined ? DASH : whole.format(value));

/** A share of 1 in percent. */
export function share(value: number | null | undefined): string {
  if (value === null || value === undefined) return DASH;
  const percent = value * 100;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

/** `850 ms`, `12 s`, `3 min 05 s`, `2 h 10 min`, `3 d 4 h`. */
export function span(ms: number, { fine = false } = {}): string {
  if (fine && ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (fine && ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.max(0, Math.round(ms / 1000));
  const pad = (value: number) => String(value).padStart(2, "0");
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${pad(seconds % 60)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
  const hours = Math.round(seconds / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The time of day if it is today's, else with the date. */
export function moment(at: number): string {
  const then = new Date(at);
  return new Date().toDateString() === then.toDateString() ? clock.format(then) : dated.format(then);
}

export const fullMoment = (at: number) => dated.format(new Date(at));

/** `effectiveLimit` → `effective limit`. */
export const words = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll("_", " ").toLowerCase();

/** The start of a long id; whoever wants all of it finds it in the title. */
export const shortId = (id: string) => (id.length > 10 ? `${id.slice(0, 8)}…` : id);

/** What leaves no trace of itself in a text, or turns the text around it. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u034f\u115f\u1160\u3164\uffa0]/gu;

/** A text that someone gave, so that all of it is seen: `a<U+202E>b`, and white space at an end as `␣`. */
export const shown = (text: string) =>
  text
    .replace(unseen, (character) => `<U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}>`)
    .replace(/^\s+|\s+$/gu, (space) => "␣".repeat(space.length));

/** Whether a text can be typed as it stands. */
export const isTypable = (text: string) => text.trim() !== "" && shown(text.trim()) === text.trim();
