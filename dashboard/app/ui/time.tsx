// Moments on the page, with the whole date for whoever points at them.

import { fullMoment, moment, span } from "../format";

export function At({ at }: { at: number }) {
  return <time dateTime={new Date(at).toISOString()} title={fullMoment(at)}>{moment(at)}</time>;
}

/** How far a moment lies ahead, or how long ago it was, by the service's clock. */
export function Away({ at, now }: { at: number; now: number }) {
  const text = at >= now ? `in ${span(at - now)}` : `${span(now - at)} ago`;
  return <time dateTime={new Date(at).toISOString()} title={fullMoment(at)}>{text}</time>;
}
