// Who may call: the keys of this source, and what else its callers must show.

import { Keys } from "./keys";
import { Policies } from "./policies";
import type { TabProps } from "./view";

export function Access({ name, live }: TabProps) {
  return (
    <>
      <Keys name={name} now={live.now} />
      <Policies live={live} />
    </>
  );
}
