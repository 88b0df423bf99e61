// Storage that an earlier version wrote (fixtures/, made by fixtures/make.mjs) opens with the present one, and serves.

import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { expect, test, vi } from "vitest";
import layout2 from "./fixtures/layout-2.json";
import { acquire, admin, expectError, free, grant, lock, objectOf, renew, stateOf } from "./support";

const LAYOUT = 2;
const { known } = layout2;
const tables = layout2.kept as Record<string, { sql: string; rows: Record<string, string | number | null>[] }>;

/** What layout 1 had instead: nothing was learned. */
const layout1: typeof tables = {
  ...tables,
  source: {
    sql: tables.source.sql.replace(/,\s*learned TEXT/, ""),
    rows: tables.source.rows.map(({ learned, ...row }) => ({ ...row, layout: 1 })),
  },
};

/** A source as it was kept, at a moment just after that. */
async function kept(name: string, stored: typeof tables) {
  vi.setSystemTime(known.madeAt + 1000);
  const source = { name, key: known.key, keyId: "" };
  await runInDurableObject(objectOf(source), async (_, state) => {
    await state.storage.deleteAll();
    for (const [table, { sql, rows }] of Object.entries(stored)) {
      state.storage.sql.exec(sql);
      for (const row of rows) {
        const marks = Object.keys(row).map(() => "?");
        state.storage.sql.exec(`INSERT INTO "${table}" (${Object.keys(row)}) VALUES (${marks})`, ...Object.values(row));
      }
    }
  });
  await abortAllDurableObjects();
  return source;
}

for (const [layout, stored] of [[1, layout1], [2, tables]] as const) {
  test(`a source of layout ${layout} opens and serves: slots, keys, log, window, what was learned`, async () => {
    // Keys are signed for the name, so all stand under the same one.
    const source = await kept("kept", stored);
    const state = await stateOf(source);
    expect(state).toMatchObject({ inUse: 2, effectiveLimit: layout === 1 ? 6 : known.effectiveLimit });
    expect(state.rpm).toMatchObject({ limit: 5, remaining: 2 });

    const [first, second] = known.slots;
    expect((await renew(source, first)).body.leaseDeadline).toBe(known.madeAt + 1000 + 600_000);
    const again = await acquire(source, { idempotencyKey: "job-2" });
    expect(again.headers.get("x-swarmvia-replayed")).toBe("true");
    expect(again.body.slotId).toBe(second.slotId);
    await free(source, first, { status: 200 });
    expect((await renew(source, first)).status).toBe(404);
    expect((await lock(source, `${known.released.slotId}/release`)).body).toEqual({ released: false });

    expectError(await acquire({ ...source, key: known.revoked }), 401, "unauthorized");
    const refreshed = await admin("POST", "/pools/kept/keys/refresh", { refreshToken: known.second.refreshToken });
    expect(refreshed.status).toBe(200);
    await grant({ ...source, key: known.second.accessKey });
    await grant({ ...source, key: refreshed.body.accessKey });
    expectError(await acquire(source), 429, "too_many_requests", { reason: "rpm" });
    expect((await admin("GET", "/pools/kept/keys")).body.keys).toHaveLength(3);

    const page = (await admin("GET", "/pools/kept/log?limit=2")).body;
    const rest = (await admin("GET", `/pools/kept/log?before=${page.next}`)).body;
    const entries: any[] = [...page.entries, ...rest.entries];
    // The newest first; what was refused has no ref, and a repeat that of its slot.
    expect(entries.flatMap(({ ref }) => ref ?? [])).toEqual(["7", "6", "2", "3", "2", "1"]);
    expect(entries.map(({ outcome }) => outcome)).toContain("unauthorized");
    const audit = (await admin("GET", "/pools/kept/audit")).body.entries.map((entry: any) => entry.action);
    expect(audit).toEqual(expect.arrayContaining(["created", "minted", "revoked"]));
    const [row] = await runInDurableObject(objectOf(source), (_, state) =>
      state.storage.sql.exec("SELECT layout FROM source").toArray(),
    );
    expect(row.layout).toBe(LAYOUT);
  });
}

test("a layout of the future is refused, and nothing is touched", async () => {
  const future = { ...tables, source: { ...tables.source, rows: tables.source.rows.map((row) => ({ ...row, layout: LAYOUT + 1 })) } };
  const source = await kept("kept", future);
  const said = vi.spyOn(console, "error");
  const refused = await acquire(source);
  expectError(refused, 503, "unavailable");
  const request = refused.headers.get("x-swarmvia-request-id");
  expect(said.mock.calls.flat()).toContain(`503: source ${source.name}, request ${request}`);
  const shown = await admin("GET", `/pools/${source.name}`);
  expectError(shown, 503, "unavailable");
  expect(said.mock.calls.flat()).toContain(`503: source ${source.name}, request ${shown.headers.get("x-swarmvia-request-id")}`);
  said.mockRestore();
  const rows = await runInDurableObject(objectOf(source), (_, state) => state.storage.sql.exec("SELECT layout FROM source").toArray());
  expect(rows).toEqual([{ layout: LAYOUT + 1 }]);
});
