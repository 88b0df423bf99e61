// What stands under a form of settings: the conflict if there is one, what was refused, the buttons.

import { Notice } from "../ui/notice";
import type { Saving } from "./use-save";

export function SaveBar({ saving }: { saving: Saving }) {
  const { conflict, problem, saved, isEdited, busy } = saving;
  return (
    <>
      {conflict && (
        <Notice kind="bad">
          <p>These settings were changed elsewhere since you began. Nothing of yours is saved.</p>
          {conflict.length > 0 ? <><p>Now it says:</p><ul>{conflict.map((line) => <li key={line}><code>{line}</code></li>)}</ul></> : <p>The change is in another part than this form.</p>}
          <div class="actions">
            <button type="button" onClick={saving.discard}>Drop my edits</button>
            <button type="button" onClick={saving.accept}>Keep my edits, over the new settings</button>
          </div>
        </Notice>
      )}
      {problem && <Notice kind="bad">{problem.message}</Notice>}
      {saved && !isEdited && <Notice kind="good">Saved. It is in force.</Notice>}
      <div class={`actions sticky ${isEdited ? "edited" : ""}`}>
        <button type="button" disabled={!isEdited || busy} onClick={saving.discard}>Discard</button>
        <button class="primary" disabled={!isEdited || busy || conflict !== null}>{busy ? "Saving …" : "Save"}</button>
      </div>
    </>
  );
}
