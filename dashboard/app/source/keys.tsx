// The families of keys: minted, listed, revoked.

import { useState } from "preact/hooks";
import { admin, pool } from "../api";
import { count, isTypable, shortId, shown } from "../format";
import type { Key } from "../types";
import { Confirm } from "../ui/confirm";
import { Notice } from "../ui/notice";
import { Table } from "../ui/table";
import { At, Away } from "../ui/time";
import { useLoad } from "../ui/use-load";
import { Mint } from "./mint";

const PAGE = 50;

export function Keys({ name, now }: { name: string; now: number }) {
  const [starts, setStarts] = useState<string[]>([""]);
  const [revoked, setRevoked] = useState<Key | null>(null);
  const after = starts.at(-1)!;
  const path = `${pool(name, "keys")}?limit=${PAGE}${after && `&after=${after}`}`;
  const list = useLoad(path, () => admin<{ keys: Key[]; next: string | null }>("GET", path));
  const keys = (list.value?.keys ?? []).toSorted(byUse);
  const next = list.value?.next ?? null;
  return (
    <section class="panel">
      <div class="heading">
        <h2>Keys</h2>
        <button type="button" class="quiet" onClick={list.reload} disabled={list.busy}>Refresh</button>
      </div>
      <Mint name={name} onMinted={list.reload} />
      {list.problem && <Notice kind="bad">{list.problem}</Notice>}
      <Table caption="Keys" columns={COLUMNS} empty={list.value ? "No key yet. Mint one for each worker process." : "Reading …"}>
        {keys.map((key) => (
          <tr key={key.keyId}>
            <th scope="row"><span class="key-name">{key.name === null ? <span class="muted">no name</span> : shown(key.name)}</span></th>
            <td><code title={key.keyId}>{shortId(key.keyId)}</code></td>
            <td><span class={`dot ${key.state === "live" ? "good" : ""}`}>{key.state}</span></td>
            <td class="number minor"><At at={key.createdAt} /></td>
            <td class="number">{key.revokedAt !== null ? <>revoked <Away at={key.revokedAt} now={now} /></> : <Away at={key.expiresAt} now={now} />}</td>
            <td class="number minor"><Away at={key.refreshExpiresAt} now={now} /></td>
            <td class="act">
              {key.state !== "revoked" && (
                <button type="button" class="quiet bad" aria-label={`Revoke key ${key.name === null ? key.keyId : shown(key.name)}`} onClick={() => setRevoked(key)}>Revoke …</button>
              )}
            </td>
          </tr>
        ))}
      </Table>
      {(starts.length > 1 || next) && (
        <div class="paging">
          <button type="button" disabled={starts.length === 1} onClick={() => setStarts(starts.slice(0, -1))}>Previous</button>
          <span>Page {count(starts.length)}</span>
          <button type="button" disabled={!next} onClick={() => next && setStarts([...starts, next])}>Next</button>
        </div>
      )}
      {revoked && (
        <Confirm title="Revoke a key" {...wordFor(revoked)} action="Revoke it" onClose={() => setRevoked(null)}
          onConfirm={async () => {
            await admin("DELETE", pool(name, "keys", revoked.keyId));
            list.reload();
          }}>
          <p>The whole family, this key and all that came of its refresh tokens, is refused from the next call on, for good. Slots it holds stay until their leases end.</p>
        </Confirm>
      )}
    </section>
  );
}

/** What is typed before a key is revoked: its name, where it can be typed. */
const wordFor = ({ name, keyId }: Key) =>
  name !== null && isTypable(name) ? { word: name.trim(), what: "its name" } : { word: keyId, what: "its id" };

/** Live ones first, then the newest. */
const byUse = (a: Key, b: Key) => Number(b.state === "live") - Number(a.state === "live") || b.createdAt - a.createdAt;

const COLUMNS = [
  { label: "Name" },
  { label: "Id" },
  { label: "State" },
  { label: "Minted", number: true, minor: true },
  { label: "Key ends", number: true },
  { label: "Refresh ends", number: true, minor: true },
  { label: "Action", unseen: true },
];
