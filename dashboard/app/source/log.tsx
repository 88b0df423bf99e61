// Who came, who was refused, and who changed what.

import { useState } from "preact/hooks";
import { Segments } from "../ui/segments";
import { Attempts } from "./attempts";
import { Changes } from "./changes";
import type { TabProps } from "./view";

const KINDS = [{ value: "attempts", label: "Attempts" }, { value: "changes", label: "Changes by operators" }] as const;

export function Log({ name }: TabProps) {
  const [kind, setKind] = useState<(typeof KINDS)[number]["value"]>("attempts");
  return (
    <section class="panel">
      <div class="heading">
        <h2>Log</h2>
        <Segments legend="Which log" name="log-kind" options={KINDS} value={kind} onChange={setKind} />
      </div>
      {kind === "attempts" ? <Attempts name={name} /> : <Changes name={name} />}
    </section>
  );
}
