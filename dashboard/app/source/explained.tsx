// What came of `explain`: how the report was read, and what would be different after it. Parts that this
// page doesn't know are shown as they are.

import { words } from "../format";
import { Data, isObject, labelOf, plain } from "../ui/data";
import { Table } from "../ui/table";

type Answer = Record<string, unknown>;

export function Explained({ answer }: { answer: Answer }) {
  const { before, after, changes, ...rest } = answer;
  const compared = isObject(before) && isObject(after);
  const parts: [string, unknown][] = Object.entries(compared ? rest : answer);
  const short = Object.fromEntries(parts.filter(([, value]) => !isObject(value)));
  return (
    <div class="explained" role="status">
      {parts.filter(([, value]) => isObject(value)).map(([name, value]) => (
        <section key={name}>
          <h3>{name === "read" ? "Read as" : words(name)}</h3>
          <Data value={value} />
        </section>
      ))}
      <section>
        <h3>In short</h3>
        <Data value={short} />
      </section>
      {compared && <section class="wide"><Changes before={leaves(before)} after={leaves(after)} /></section>}
    </div>
  );
}

const COLUMNS = [{ label: "What would change" }, { label: "Now", number: true }, { label: "After it", number: true }];

function Changes({ before, after }: { before: Map<string, unknown>; after: Map<string, unknown> }) {
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path));
  const last = (path: string) => path.split(".").at(-1)!;
  return (
    <Table caption="What would change" columns={COLUMNS} empty="Nothing would change.">
      {changed.map((path) => (
        <tr key={path}>
          <th scope="row" class="wrap">{path.split(".").map(labelOf).join(", ")}</th>
          <td class="number">{plain(last(path), before.get(path))}</td>
          <td class="number">{plain(last(path), after.get(path))}</td>
        </tr>
      ))}
    </Table>
  );
}

/** Every value that is no object, by its path. */
function leaves(value: Answer, path = ""): Map<string, unknown> {
  return new Map(Object.entries(value).flatMap(([name, part]): [string, unknown][] => {
    const place = path ? `${path}.${name}` : name;
    return isObject(part) ? [...leaves(part, place)] : [[place, part]];
  }));
}
