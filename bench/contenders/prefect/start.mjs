// Prefect's server: its global concurrency limits, with slots under leases.
// It has no queue on the server: who finds no slot is told 423 and when to come back.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../../scripts/lib/net.mjs";
import { onPath } from "../../../scripts/lib/run.mjs";
import { ID, LONG_TERM_MS } from "../../lib/calls.mjs";
import { server, startProgram } from "../../lib/server.mjs";

/** PREFECT says where it is, if it isn't on the PATH. */
const program = () => process.env.PREFECT ?? "prefect";
const API = "/api/v2/concurrency_limits";

export const prefect = {
  name: "prefect",
  title: "Prefect",
  about: "Prefect's server with its own SQLite, as installed: concurrency limits with leases. No queue on the server, so who waits comes back when told",
  locks: true,
  /** With more of them its database is locked time and again. */
  mostCallers: 1,
  missing: () =>
    onPath(program()) || existsSync(program()) ? null : "prefect is skipped: there is no prefect on the PATH, nor where the variable PREFECT says (PyPI: prefect).",

  async start({ folder }) {
    mkdirSync(folder, { recursive: true });
    const port = await freePort();
    const env = {
      ...process.env,
      PREFECT_HOME: folder,
      PREFECT_SERVER_ANALYTICS_ENABLED: "false",
      PREFECT_SERVER_UI_ENABLED: "false",
      PREFECT_SERVER_LOGGING_LEVEL: "ERROR",
      PREFECT_API_DATABASE_CONNECTION_URL: `sqlite+aiosqlite:///${join(folder, "prefect.db")}`,
    };
    const args = ["server", "start", "--host", "127.0.0.1", "--port", String(port)];
    const group = await startProgram({ program: program(), args, port, path: "/api/health", env });
    return server({ group, port, queues: false, leastTermMs: 60_000, source: (name, wanted) => makeSource(port, name, wanted) });
  },
};

async function makeSource(port, name, { limit, termMs = LONG_TERM_MS }) {
  const answer = await fetch(`http://127.0.0.1:${port}${API}/`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name, limit }),
  });
  if (answer.status !== 201) throw new Error(`prefect: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
  const wanted = JSON.stringify({ names: [name], slots: 1, mode: "concurrency", lease_duration: termMs / 1000 });
  return {
    name,
    headers: { "Content-Type": "application/json" },
    idField: "lease_id",
    idLength: 36,
    // No slot; and a database that another call has locked, which is how SQLite serves several callers here.
    retried: [423, 503],
    acquire: { path: `${API}/increment-with-lease`, body: () => wanted },
    renew: { path: `${API}/leases/${ID}/renew`, body: JSON.stringify({ lease_duration: termMs / 1000 }) },
    release: { path: `${API}/decrement-with-lease`, body: `{"lease_id":"${ID}"}` },
  };
}
