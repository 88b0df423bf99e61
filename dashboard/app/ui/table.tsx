// The frame of a table: a caption, scrolling on its own where it is wide, a sentence where it is empty.

import type { ComponentChildren } from "preact";

interface Props {
  caption: string;
  columns: { label: string; number?: boolean; minor?: boolean; unseen?: boolean }[];
  empty?: ComponentChildren;
  children: ComponentChildren[];
}

export function Table({ caption, columns, empty, children }: Props) {
  if (children.length === 0) return <p class="empty">{empty}</p>;
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ label, number, minor, unseen }) => (
              <th key={label} scope="col" class={[number && "number", minor && "minor"].filter(Boolean).join(" ") || undefined}>
                {unseen ? <span class="unseen">{label}</span> : label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
