// The settings of a source, and its end.

import { useState } from "preact/hooks";
import { admin, pool } from "../api";
import { fullMoment } from "../format";
import { go, SOURCES_HREF } from "../route";
import { Fields } from "../settings/fields";
import { toSettings, toValues } from "../settings/model";
import { SaveBar } from "../settings/save-bar";
import { useSave } from "../settings/use-save";
import { Confirm } from "../ui/confirm";
import type { TabProps } from "./view";

export function SettingsTab({ name, live }: TabProps) {
  const [ending, setEnding] = useState(false);
  const saving = useSave(live, ({ settings }) => toValues(settings), (values, { settings }) => toSettings(values, settings.access));
  const { createdAt, updatedAt } = live.source!;
  return (
    <>
      <section class="panel">
        <h2>Settings</h2>
        <p class="muted">A change is in force at once: limits for callers who wait too, queue bounds for newcomers. Deadlines already promised never move. An empty field takes its default.</p>
        <form onSubmit={saving.save} method="post" noValidate>
          <Fields values={saving.values} problem={saving.problem} onEdit={saving.edit} />
          <SaveBar saving={saving} />
        </form>
        <p class="muted small">Created {fullMoment(createdAt)}, last changed {fullMoment(updatedAt)}.</p>
      </section>
      <section class="panel">
        <h2>End this source</h2>
        <p class="muted">Its waiters are turned away, its keys stop working, and everything it stored is deleted: settings, keys, logs.</p>
        <button type="button" class="danger" onClick={() => setEnding(true)}>Delete the source …</button>
      </section>
      {ending && (
        <Confirm title="Delete a source" word={name} what="the name of the source" action="Delete it" onClose={() => setEnding(false)}
          onConfirm={async () => {
            await admin("DELETE", pool(name));
            go(SOURCES_HREF);
          }}>
          <p>Waiters get 401, all keys stop working, and settings, keys and logs are gone for good. Workers that hold a slot aren't stopped.</p>
        </Confirm>
      )}
    </>
  );
}
