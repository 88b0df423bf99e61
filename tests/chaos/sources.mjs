// The sources of a run: what each of them is there to strain.
// Never more settings than a source's purpose needs.
//
// `flap` is what the operator does to a source while it is used; `ways` are the ways of its callers, by weight
// (ways.mjs). A term stays what it is, so that the checker knows when a slot that nobody told it of has ended.

const lease = (termMs) => ({ termMs, renewIntervalMs: 200, requestTimeoutMs: 6 * termMs });
const HONEST = { honest: 6, renewing: 2 };

/** The longest lease that nobody renews. */
export const LONGEST_TERM_MS = 3000;

export const SOURCES = [
  {
    // Everything at once, under settings that change.
    name: "busy",
    settings: { concurrency: { limit: 4, max: 8 }, queue: { maxDepth: 40 }, lease: lease(900) },
    flap: ["limit", "queue", "adaptive"],
    callers: 14,
    ways: {
      ...HONEST,
      vanish: 1,
      lateRenew: 1,
      lateRelease: 1,
      releaseTwice: 2,
      elsewhere: 1,
      taken: 1,
      garbage: 2,
      lostAnswer: 2,
      leave: 2,
      share: 1,
    },
  },
  {
    // One slot: who holds it and who is next is known exactly, so the figures come from here.
    name: "single",
    settings: { concurrency: { limit: 1 }, queue: { maxDepth: 40 }, lease: lease(600) },
    flap: [],
    callers: 5,
    ways: { honest: 8, vanish: 2, lateRelease: 1, renewing: 1 },
  },
  {
    // A gate by the minute, opened and closed.
    name: "minute",
    settings: { rpm: { limit: 30 }, concurrency: { limit: 5 }, queue: { timeoutMs: 2500 }, lease: lease(700) },
    flap: ["rpm"],
    callers: 5,
    ways: { ...HONEST, lostAnswer: 1, leave: 1 },
  },
  {
    // Deleted and made anew while it is used; keys revoked while their callers wait.
    name: "fragile",
    settings: { concurrency: { limit: 2 }, queue: { maxDepth: 30 }, lease: lease(700) },
    flap: ["recreate"],
    callers: 8,
    ways: { ...HONEST, revoked: 4, vanish: 1, releaseTwice: 1, garbage: 1 },
  },
  {
    // Leases that outlast a restart, and holders who rely on them.
    name: "long",
    settings: { concurrency: { limit: 3 }, queue: { maxDepth: 40 }, lease: lease(3000) },
    flap: [],
    callers: 6,
    ways: { keep: 4, honest: 1, renewing: 1 },
  },
  {
    // Connections that break at every moment, under a limit that stays.
    name: "broken",
    settings: { concurrency: { limit: 3 }, queue: { maxDepth: 60 }, lease: lease(800) },
    flap: [],
    callers: 10,
    ways: { honest: 3, lostAnswer: 4, leave: 4, share: 2 },
  },
];
