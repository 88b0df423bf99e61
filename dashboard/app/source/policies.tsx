// What a caller must show beside its key. Saved with the other settings, which stay as they are.

import type { JSX } from "preact";
import { Field } from "../settings/field";
import type { Values } from "../settings/model";
import { SaveBar } from "../settings/save-bar";
import { useSave } from "../settings/use-save";
import type { Source } from "../types";
import type { Live } from "./use-live";

export function Policies({ live }: { live: Live }) {
  const saving = useSave(live, toValues, toBody);
  const { values, problem, edit } = saving;
  const text = (path: string, label: string, hint?: string) => (
    <Field path={path} label={label} hint={hint} problem={problem}>
      {(attributes) => <input {...attributes} value={String(values[path])} autocomplete="off" spellcheck={false} onInput={(event) => edit(path, event.currentTarget.value)} />}
    </Field>
  );
  const tick = (path: string, label: string | JSX.Element) => (
    <label class="tick"><input type="checkbox" checked={values[path] === true} onChange={(event) => edit(path, event.currentTarget.checked)} /><span>{label}</span></label>
  );
  const area = (path: string, label: string, hint: string, rows: number) => (
    <Field path={path} label={label} hint={hint} wide problem={problem}>
      {(attributes) => <textarea {...attributes} rows={rows} value={String(values[path])} spellcheck={false} onInput={(event) => edit(path, event.currentTarget.value)} />}
    </Field>
  );
  return (
    <section class="panel">
      <h2>Policies</h2>
      <p class="muted">Beside a live key of this source. Who is shut out is out on the very next call.</p>
      <form onSubmit={saving.save} method="post" noValidate>
        <fieldset class="group">
          <legend>How a key may come</legend>
          <p class="hint">Always as <code>X-Swarmvia-Key</code>.</p>
          {tick("access.bearer", <>and as <code>Authorization: Bearer</code></>)}
          {tick("access.swarmvia", <>and as <code>Authorization: Swarmvia</code></>)}
        </fieldset>
        <fieldset class="group">
          <legend>Addresses</legend>
          {area("access.ipAllowlist", "Addresses and networks that may call", "One a line, such as 203.0.113.0/24 or 2001:db8::/32. None: all may.", 4)}
        </fieldset>
        <fieldset class="group">
          <legend>A JWT of your own issuer</legend>
          {tick("jwt", "Callers must show one")}
          {values.jwt === true && (
            <>
              {text("access.jwt.issuer", "Issuer")}
              {text("access.jwt.audience", "Audience")}
              {text("access.jwt.jwksUrl", "URL of the key set", "Or give the keys themselves below.")}
              {area("access.jwt.jwks", "Key set", 'JSON: {"keys": […]}. Only where there is no URL.', 5)}
              {text("access.jwt.header", "Header that carries it", "X-Swarmvia-Jwt unless you say.")}
            </>
          )}
        </fieldset>
        <fieldset class="group">
          <legend>Cloudflare Access</legend>
          {tick("cloudflareAccess", "Callers must have passed an application")}
          {values.cloudflareAccess === true && (
            <>
              {text("access.cloudflareAccess.teamDomain", "Team domain", "team.cloudflareaccess.com")}
              {text("access.cloudflareAccess.audience", "Audience tag")}
            </>
          )}
        </fieldset>
        <SaveBar saving={saving} />
      </form>
    </section>
  );
}

function toValues({ settings: { access } }: Source): Values {
  return {
    "access.bearer": access.bearer,
    "access.swarmvia": access.swarmvia,
    "access.ipAllowlist": access.ipAllowlist.join("\n"),
    jwt: access.jwt !== null,
    "access.jwt.issuer": access.jwt?.issuer ?? "",
    "access.jwt.audience": access.jwt?.audience ?? "",
    "access.jwt.jwksUrl": access.jwt?.jwksUrl ?? "",
    "access.jwt.jwks": access.jwt?.jwks ? JSON.stringify(access.jwt.jwks, null, 2) : "",
    "access.jwt.header": access.jwt?.header ?? "",
    cloudflareAccess: access.cloudflareAccess !== null,
    "access.cloudflareAccess.teamDomain": access.cloudflareAccess?.teamDomain ?? "",
    "access.cloudflareAccess.audience": access.cloudflareAccess?.audience ?? "",
  };
}

/** What is left empty is left out, and the API says what it misses. */
function toBody(values: Values, { settings }: Source) {
  const given = (path: string, read: (text: string) => unknown = (text) => text) => {
    const text = String(values[path]).trim();
    return text === "" ? {} : { [path.split(".").at(-1)!]: read(text) };
  };
  const jwt = {
    ...given("access.jwt.issuer"),
    ...given("access.jwt.audience"),
    ...given("access.jwt.jwksUrl"),
    ...given("access.jwt.jwks", parsed),
    ...given("access.jwt.header"),
  };
  const cloudflareAccess = { ...given("access.cloudflareAccess.teamDomain"), ...given("access.cloudflareAccess.audience") };
  return {
    ...settings,
    access: {
      bearer: values["access.bearer"],
      swarmvia: values["access.swarmvia"],
      ipAllowlist: String(values["access.ipAllowlist"]).split(/[\s,]+/).filter(Boolean),
      jwt: values.jwt ? jwt : null,
      cloudflareAccess: values.cloudflareAccess ? cloudflareAccess : null,
    },
  };
}

/** JSON as it was typed; what is none goes out as text, and the API refuses it by name. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
