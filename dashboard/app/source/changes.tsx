// What operators did to this source.

import { pool } from "../api";
import { count, DASH, moment, shortId, shown } from "../format";
import type { Change } from "../types";
import { Notice } from "../ui/notice";
import { Table } from "../ui/table";
import { At } from "../ui/time";
import { usePages } from "./use-pages";

const all = () => true;

export function Changes({ name }: { name: string }) {
  const pages = usePages<Change>(pool(name, "audit"), "", "", "", all);
  return (
    <>
      {pages.problem && <Notice kind="bad">{pages.problem}</Notice>}
      <Table caption="Changes by operators, newest first" columns={COLUMNS} empty={pages.busy ? "Reading …" : "Nothing yet."}>
        {pages.matching.map((change) => (
          <tr key={`${change.requestId}-${change.action}`}>
            <td><At at={change.at} /></td>
            <td>{change.action}</td>
            <td class="wrap">{describe(change.detail)}</td>
            <td>{change.ip ?? DASH}</td>
            <td class="minor"><code title={change.requestId}>{shortId(change.requestId)}</code></td>
          </tr>
        ))}
      </Table>
      <div class="paging">
        <span role="status">{count(pages.searched)}{pages.oldest !== null && `, back to ${moment(pages.oldest)}`}</span>
        <button type="button" disabled={pages.busy || pages.isComplete} onClick={pages.more}>Older</button>
      </div>
    </>
  );
}

const describe = (detail: Record<string, unknown>) =>
  Object.entries(detail).map(([name, value]) => `${name} ${shown(typeof value === "object" ? JSON.stringify(value) : String(value))}`).join(", ") || DASH;

const COLUMNS = [{ label: "When" }, { label: "What" }, { label: "Of" }, { label: "From" }, { label: "Request", minor: true }];
