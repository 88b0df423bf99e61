// What was learned from release reports, and what a report would be read as.

import { useState } from "preact/hooks";
import { admin, pool } from "../api";
import { span } from "../format";
import { Confirm } from "../ui/confirm";
import { Data } from "../ui/data";
import { Explain } from "./explain";
import type { TabProps } from "./view";

export function Learning({ name, live }: TabProps) {
  const [forgetting, setForgetting] = useState(false);
  const { state, settings } = live.source!;
  const cooling = state.cooldownUntil !== null && state.cooldownUntil > live.now;
  const adaptive = [settings.concurrency.adaptive && "concurrency", settings.rpm.adaptive && "requests per minute"].filter(Boolean);
  return (
    <>
      <section class="panel">
        <div class="heading">
          <h2>What was learned</h2>
          {isAnything(state.learned) || cooling ? (
            <button type="button" class="quiet bad" onClick={() => setForgetting(true)}>{isAnything(state.learned) ? "Forget it …" : "Open the gate …"}</button>
          ) : null}
        </div>
        {state.learned === undefined ? (
          <p class="empty">This service does not tell what it has learned.</p>
        ) : !isAnything(state.learned) ? (
          <p class="empty">Nothing{adaptive.length > 0 ? " yet" : ""}.</p>
        ) : (
          <Data value={state.learned} />
        )}
        {cooling && <p>A report closed the gate: a cool-down stands for another {span(state.cooldownUntil! - live.now)}.</p>}
        <p class="muted small">
          {adaptive.length > 0 ? `Learning is on for ${adaptive.join(" and ")}.` : "Learning is off: reports close the gate for a cool-down, and change no limit."}
        </p>
      </section>
      {state.lastReport ? (
        <section class="panel">
          <h2>The last report</h2>
          <Data value={state.lastReport} />
          <p class="muted small">The last release that said anything, as it was read. Is what the upstream sent in it?</p>
        </section>
      ) : null}
      <Explain name={name} />
      {forgetting && (
        <Confirm title="Forget what was learned" word={name} what="the name of the source" action="Forget it" onClose={() => setForgetting(false)}
          onConfirm={async () => {
            await admin("POST", pool(name, "reset"));
            await live.reload();
          }}>
          <p>The limits go back to the configured ones, at once, and learning begins anew.{cooling && " The cool-down ends now."}</p>
        </Confirm>
      )}
    </>
  );
}

/** Whether there is a value anywhere in it. */
function isAnything(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return value !== null && value !== undefined;
  return Object.values(value).some(isAnything);
}
