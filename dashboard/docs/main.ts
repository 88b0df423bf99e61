// The API docs: RapiDoc over the /openapi.json of this very host. Only its bundle is used, which holds
// all it draws on; package.json keeps the packages it was built from out of node_modules.
//
// No fonts and no other document are loaded, and calls go to this host alone.

import "rapidoc/dist/rapidoc-min.js";
import licences from "rapidoc/dist/rapidoc-min.js.LICENSE.txt?url";
import "./docs.css";
import { mend } from "./mend";

const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 767px)");

const FIXED = {
  "spec-url": "/openapi.json",
  "server-url": location.origin,
  "show-header": "false",
  "load-fonts": "false",
  "allow-try": "false",
  "allow-authentication": "false",
  "allow-spec-file-load": "false",
  "allow-spec-url-load": "false",
  "allow-server-selection": "false",
  "allow-search": "false",
  "allow-advanced-search": "false",
  "show-method-in-nav-bar": "as-plain-text",
  "use-path-in-nav-bar": "false",
  "schema-description-expanded": "true",
  "schema-style": "table",
  "sort-tags": "false",
  "regular-font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
  "mono-font": "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
};
const LIGHT = { theme: "light", "bg-color": "#f5f6f8", "text-color": "#1b232b", "nav-bg-color": "#ffffff", "nav-text-color": "#3c4650", "nav-hover-bg-color": "#f0f2f5", "nav-accent-color": "#0b6570", "nav-accent-text-color": "#0b6570", "primary-color": "#0b6570" };
const DARK = { theme: "dark", "bg-color": "#101418", "text-color": "#e2e7ec", "nav-bg-color": "#171d23", "nav-text-color": "#c3ccd5", "nav-hover-bg-color": "#12171c", "nav-accent-color": "#58bfca", "nav-accent-text-color": "#58bfca", "primary-color": "#58bfca" };

const main = document.createElement("main");
const docs = document.createElement("rapi-doc");
const set = (attributes: Record<string, string>) => {
  for (const [name, value] of Object.entries(attributes)) docs.setAttribute(name, value);
};
const paint = () => set(dark.matches ? DARK : LIGHT);
// On a phone the renderer shows no list of operations, so there they follow one another.
const lay = () => set({ "render-style": narrow.matches ? "read" : "focused" });

set(FIXED);
paint();
lay();
dark.addEventListener("change", paint);
narrow.addEventListener("change", lay);
docs.addEventListener("spec-loaded", () => docs.shadowRoot && mend(docs.shadowRoot));

const back = document.createElement("a");
back.slot = "nav-logo";
back.href = "/dashboard";
back.textContent = "← Dashboard";
const credits = document.createElement("a");
credits.slot = "footer";
credits.href = licences;
credits.textContent = "Licences of what renders this page";
docs.append(back, credits);
main.append(docs);
document.body.append(main);
