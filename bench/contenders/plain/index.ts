// A plain TypeScript Durable Object with the same verbs: what one would write in an afternoon, and write well. No keys, no
// log, no learning. Leases are in memory and in SQL, one row written per verb, with no index to write beside it; waiters
// queue in order of arrival, a slot that comes free goes to the head of the queue in the same step, and the alarm moves
// only where it must ring earlier.

interface Env {
  SOURCES: DurableObjectNamespace;
}

interface Lease {
  row: number;
  secret: string;
  deadline: number;
}

interface Settings {
  limit: number;
  depth: number;
  termMs: number;
}

interface Waiter {
  settle: (answer: Response) => void;
  timer: number;
}

const json = (status: number, body: object) => new Response(JSON.stringify(body), { status, headers });
const headers = { "Content-Type": "application/json" };

export class Source {
  private readonly sql: SqlStorage;
  private settings: Settings = { limit: 10, depth: 100, termMs: 30_000 };
  private readonly leases = new Map<number, Lease>();
  private readonly waiters = new Set<Waiter>();
  private nextRow = 1;
  private alarmAt = Infinity;

  constructor(private readonly ctx: DurableObjectState) {
    this.sql = ctx.storage.sql;
    this.sql.exec("CREATE TABLE IF NOT EXISTS leases (row INTEGER PRIMARY KEY, secret TEXT NOT NULL, deadline INTEGER NOT NULL)");
    this.sql.exec("CREATE TABLE IF NOT EXISTS settings (id INTEGER PRIMARY KEY, text TEXT NOT NULL)");
    for (const { text } of this.sql.exec<{ text: string }>("SELECT text FROM settings")) this.settings = JSON.parse(text);
    for (const lease of this.sql.exec<Lease & Record<string, SqlStorageValue>>("SELECT row, secret, deadline FROM leases")) {
      this.leases.set(lease.row, { ...lease });
      this.nextRow = lease.row + 1;
    }
  }

  fetch(request: Request): Response | Promise<Response> {
    const url = new URL(request.url);
    const now = Date.now();
    this.expire(now);
    const id = url.searchParams.get("id") ?? "";
    switch (url.pathname) {
      case "/acquire":
        return this.acquire(now, Number(url.searchParams.get("wait")), request.signal);
      case "/renew":
        return this.renew(now, id);
      case "/release":
        return this.release(now, id);
      case "/settings":
        return this.configure(url.searchParams.get("text") ?? "{}");
      default:
        return json(404, { error: "not_found" });
    }
  }

  alarm(): void {
    this.alarmAt = Infinity;
    this.expire(Date.now());
    this.arm();
  }

  private acquire(now: number, waitMs: number, signal: AbortSignal): Response | Promise<Response> {
    if (this.waiters.size === 0 && this.leases.size < this.settings.limit) return this.grant(now);
    if (!(waitMs > 0) || this.waiters.size >= this.settings.depth) return json(429, { error: "too_many_requests" });
    return new Promise((resolve) => {
      const end = (answer: Response) => {
        clearTimeout(waiter.timer);
        this.waiters.delete(waiter);
        resolve(answer);
      };
      const waiter: Waiter = {
        settle: end,
        timer: setTimeout(() => end(json(504, { error: "queue_timeout" })), waitMs) as unknown as number,
      };
      this.waiters.add(waiter);
      signal.addEventListener("abort", () => end(json(499, { error: "left" })));
    });
  }

  private grant(now: number): Response {
    const { termMs } = this.settings;
    const lease = { row: this.nextRow++, secret: crypto.randomUUID(), deadline: now + termMs };
    this.sql.exec("INSERT INTO leases VALUES (?, ?, ?)", lease.row, lease.secret, lease.deadline);
    this.leases.set(lease.row, lease);
    this.arm(lease.deadline);
    return json(200, { slotId: `${lease.row}.${lease.secret}`, leaseDeadline: lease.deadline, termMs });
  }

  private renew(now: number, id: string): Response {
    const lease = this.find(id);
    if (!lease) return json(404, { error: "not_found" });
    lease.deadline = now + this.settings.termMs;
    this.sql.exec("UPDATE leases SET deadline = ? WHERE row = ?", lease.deadline, lease.row);
    return json(200, { leaseDeadline: lease.deadline });
  }

  private release(now: number, id: string): Response {
    const lease = this.find(id);
    if (!lease) return json(200, { released: false });
    this.end(lease);
    this.handOver(now);
    return json(200, { released: true });
  }

  private configure(text: string): Response {
    this.settings = JSON.parse(text);
    this.sql.exec("INSERT OR REPLACE INTO settings VALUES (1, ?)", text);
    return json(200, {});
  }

  private find(id: string): Lease | undefined {
    const dot = id.indexOf(".");
    const lease = this.leases.get(Number(id.slice(0, dot)));
    return lease?.secret === id.slice(dot + 1) ? lease : undefined;
  }

  private end(lease: Lease): void {
    this.leases.delete(lease.row);
    this.sql.exec("DELETE FROM leases WHERE row = ?", lease.row);
  }

  private handOver(now: number): void {
    for (const waiter of this.waiters) {
      if (this.leases.size >= this.settings.limit) return;
      waiter.settle(this.grant(now));
    }
  }

  /** Looks through the leases only when one may have ended: the alarm stands at the first end or earlier. */
  private expire(now: number): void {
    if (now < this.firstEnd) return;
    for (const lease of this.leases.values()) if (lease.deadline <= now) this.end(lease);
    this.firstEnd = Infinity;
    for (const lease of this.leases.values()) this.firstEnd = Math.min(this.firstEnd, lease.deadline);
    this.handOver(now);
  }

  /** No lease ends before this moment. */
  private firstEnd = 0;

  private arm(deadline = this.firstEnd): void {
    this.firstEnd = Math.min(this.firstEnd, deadline);
    if (deadline >= this.alarmAt) return;
    this.alarmAt = deadline;
    void this.ctx.storage.setAlarm(deadline);
  }
}

/** Everything that the object must know is in the URL, so that it never waits for a body. */
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, , , , name, , first, second] = request.url.split("/");
    if (!name) return new Response("ok");
    const object = env.SOURCES.getByName(name);
    const { signal } = request;
    if (request.method === "PUT") {
      return object.fetch(`http://source/settings?text=${encodeURIComponent(await request.text())}`);
    }
    if (first === "acquire") {
      const body = await request.text();
      const waitMs = body ? (JSON.parse(body) as { waitMs?: number }).waitMs : 0;
      return object.fetch(`http://source/acquire?wait=${waitMs ?? 0}`, { signal });
    }
    return object.fetch(`http://source/${second}?id=${first}`);
  },
};
