// What the API says, as far as it is shown. Parts that an older service may not send are optional.

/** Milliseconds since the epoch. */
export type Moment = number;

export interface Settings {
  concurrency: { limit: number; adaptive: boolean; min: number; max: number };
  rpm: { limit: number | null; adaptive: boolean };
  queue: { maxDepth: number; timeoutMs: number };
  lease: { termMs: number; renewIntervalMs: number; requestTimeoutMs: number };
  access: Access;
  log: { keep: number };
  location: string | null;
}

export interface Access {
  bearer: boolean;
  swarmvia: boolean;
  ipAllowlist: string[];
  jwt: { issuer: string; audience: string; jwksUrl?: string; jwks?: object; header?: string } | null;
  cloudflareAccess: { teamDomain: string; audience: string } | null;
}

/** Since the source was made. */
export interface Counters {
  /** Attempts by their outcome, as in the log. */
  acquires: Record<string, number>;
  released: number;
  expired: number;
  throttled: number;
}

export interface State {
  at: Moment;
  effectiveLimit: number;
  inUse: number;
  remainingSlots: number;
  queueDepth: number;
  rpm: { limit: number; used: number; remaining: number; opensAt: Moment | null } | null;
  cooldownUntil: Moment | null;
  counters?: Partial<Counters>;
  /** Shown as it is: what is learned may grow. */
  learned?: unknown;
  /** The same; null where none came lately. */
  lastReport?: unknown;
}

export interface Source {
  source: string;
  version: string;
  createdAt: Moment;
  updatedAt: Moment;
  settings: Settings;
  state: State;
}

export interface Summary {
  at: Moment;
  effectiveLimit: number;
  inUse: number;
  queueDepth: number;
  counters?: Partial<Counters>;
}

export interface ListedSource {
  source: string;
  createdAt: Moment;
  updatedAt: Moment;
  summary: Summary | null;
}

export interface Slot {
  ref: string;
  keyId: string;
  keyName?: string | null;
  since: Moment;
  leaseDeadline: Moment;
  requestDeadline: Moment;
}

export interface Key {
  keyId: string;
  name: string | null;
  createdAt: Moment;
  expiresAt: Moment;
  revokedAt: Moment | null;
  state: "live" | "expired" | "revoked";
  refreshExpiresAt: Moment;
}

export interface MintedKey {
  keyId: string;
  accessKey: string;
  expiresAt: Moment;
  refreshToken: string;
  refreshExpiresAt: Moment;
}

export interface Attempt {
  at: Moment;
  outcome: string;
  requestId?: string;
  keyId?: string;
  ip?: string;
  status?: number;
  queuedMs?: number;
  ref?: string;
  /** Of refusals that were left out. */
  count?: number;
}

export interface Change {
  at: Moment;
  requestId: string;
  action: string;
  detail: Record<string, unknown>;
  ip?: string;
}
