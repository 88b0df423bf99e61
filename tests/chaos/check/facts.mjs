// What follows from a history for certain: grants, who surely held what and when, who may have, which limits may
// have been in force, when the server was up.
// Pure. Where a history leaves something open, certainty is what it is, and never a guess.

/** How far two readings of one clock may be apart: the server reads its own once a turn, in whole milliseconds. */
export const CLOCK_MS = 3;
/** How long a call that its caller gave up may still do something inside the server. */
const AFTERLIFE_MS = 500;

const isAnswered = (call, ...statuses) => call.end === "answered" && statuses.includes(call.status);
export const isGranted = (call) => call.kind === "acquire" && isAnswered(call, 200);
export const isReplay = (call) => call.headers?.["x-swarmvia-replayed"] === "true";
export const waitedMs = (call) => Number(call.headers?.["x-swarmvia-queued-ms"] ?? 0);
/** By the server's clock. A grant that is given again says where its lease stands now, not when it began. */
export const grantedAt = (call) => call.body.leaseDeadline - call.body.termMs;
/** Where a call belongs: sources that ended and were made anew share nothing but a name. */
export const placeOf = ({ source, epoch }) => `${source}#${epoch}`;

export function facts(history) {
  const { calls, events } = history;
  const slackMs = CLOCK_MS + history.driftMs;
  const places = group([...calls, ...events.filter((event) => event.source && "epoch" in event)], placeOf);
  return {
    ...history,
    slackMs,
    /** What a machine that is slow now may add to any delay. */
    stallMs: 100 + 2 * history.stallMs,
    downs: events.filter(({ what }) => what === "down"),
    attemptSizes: count(
      calls.filter(({ attempt }) => attempt),
      attemptOf,
    ),
    places: [...places].map(([name, entries]) => place(name, entries, slackMs)),
  };
}

export const attemptOf = ({ family, attempt, id }) => (attempt ? `${family}/${attempt}` : `call ${id}`);

/** One source from its creation to its end. */
function place(name, entries, slackMs) {
  const calls = entries.filter(({ kind }) => kind);
  const endedBy = entries.find(({ what }) => what === "ended") ?? null;
  const settings = entries.filter(({ what }) => what === "settings");
  const acquires = calls.filter(({ kind }) => kind === "acquire");
  return {
    name,
    calls,
    acquires,
    settings,
    endedBy,
    slots: slotsOf(calls, endedBy, slackMs),
    /** First answers only: a grant that is given again is no other grant. */
    grants: acquires.filter((call) => isGranted(call) && !isReplay(call)).sort((a, b) => grantedAt(a) - grantedAt(b)),
    /** Calls that may have got a slot of which nobody heard: until when it may be held. */
    unknown: acquires
      .filter((call) => (call.end === "answered" ? call.status === 503 : call.sentAt !== null))
      .map((call) => ({
        call,
        from: call.invokedAt,
        until: (call.returnedAt ?? Infinity) + AFTERLIFE_MS + longestTerm(settings),
      })),
  };
}

const longestTerm = (settings) => Math.max(...settings.map((event) => event.settings.lease.termMs));

/**
 * By slot id. `from`: it was surely held from here, `until`: surely held until here; `deadline`: the last that was
 * promised. `mayFrom`, `mayUntil`: it was surely not held outside of these.
 */
function slotsOf(calls, endedBy, slackMs) {
  const slots = new Map();
  const attempts = group(
    calls.filter(({ kind }) => kind === "acquire"),
    attemptOf,
  );
  for (const call of calls.filter(isGranted)) {
    const { slotId, leaseDeadline, requestDeadline, termMs } = call.body;
    const slot = slots.get(slotId) ?? {
      slotId,
      termMs,
      requestDeadline,
      grants: [],
      renews: [],
      releases: [],
      from: Infinity,
      mayFrom: Infinity,
      deadline: 0,
    };
    slot.grants.push(call);
    slot.from = Math.min(slot.from, call.returnedAt);
    // A grant tells by the server's clock when it was made. The same one given again doesn't: it may have been made
    // since the attempt was first sent, by a call whose answer was lost.
    const first = Math.min(...attempts.get(attemptOf(call)).map(({ invokedAt }) => invokedAt));
    slot.mayFrom = Math.min(slot.mayFrom, isReplay(call) ? first : Math.max(call.invokedAt, grantedAt(call) - slackMs));
    slot.deadline = Math.max(slot.deadline, leaseDeadline);
    slots.set(slotId, slot);
  }
  for (const call of calls.filter(({ family }) => family !== null)) {
    const slot = slots.get(call.slotId);
    if (call.kind === "renew") slot?.renews.push(call);
    if (call.kind === "release") slot?.releases.push(call);
  }
  for (const slot of slots.values()) {
    const renewed = slot.renews.filter((call) => isAnswered(call, 200));
    slot.deadline = Math.max(slot.deadline, ...renewed.map(({ body }) => body.leaseDeadline));
    // A renewal that nobody heard of may have moved the deadline.
    const unheard = slot.renews.filter((call) => !isAnswered(call, 200, 401, 404, 409));
    const latest = Math.max(
      slot.deadline,
      ...unheard.map((call) => (call.returnedAt ?? Infinity) + AFTERLIFE_MS + slot.termMs),
    );
    const freed = slot.releases.filter((call) => isAnswered(call, 200)).map((call) => call.returnedAt);
    slot.firstRelease = slot.releases.toSorted((a, b) => a.invokedAt - b.invokedAt)[0] ?? null;
    slot.until = Math.min(slot.deadline - slackMs, slot.firstRelease?.invokedAt ?? Infinity, endedBy?.invokedAt ?? Infinity);
    slot.mayUntil = Math.min(latest + slackMs, ...freed, endedBy?.returnedAt ?? Infinity);
  }
  return [...slots.values()];
}

/**
 * The settings that may have been in force at some moment from `from` to `to`: each from the moment it was sent
 * until the next one that was sent later was answered.
 */
export function inForce({ settings }, from, to) {
  return settings
    .filter((event, i) => event.invokedAt <= to && (settings[i + 1]?.returnedAt ?? Infinity) >= from)
    .map((event) => event.settings);
}

/** While the limit is learned it may be anywhere between its bounds. */
export const highestLimit = ({ concurrency: { limit = 10, adaptive, max } }) => (adaptive ? (max ?? limit) : limit);
export const lowestLimit = ({ concurrency: { limit = 10, adaptive, min = 1 } }) => (adaptive ? min : limit);

/** Whether the server was down, or just back, at some moment from `from` to `to`. */
export const wasDown = ({ downs }, from, to) =>
  downs.some((down) => down.invokedAt <= to && (down.returnedAt ?? Infinity) + 100 >= from);

export function group(list, key) {
  const groups = new Map();
  for (const item of list) {
    const name = key(item);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(item);
  }
  return groups;
}

const count = (list, key) => new Map([...group(list, key)].map(([name, items]) => [name, items.length]));
