// .dev.vars: the secrets of a local run, in wrangler's format (NAME="value" lines, git-ignored).
// Never overwrites the file, and never prints a value.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { inRoot } from "./paths.mjs";
import { say, Stop } from "./say.mjs";

const file = inRoot(".dev.vars");

/** The names and values in .dev.vars; nothing if there is no such file. */
export function readDevVars() {
  if (!existsSync(file)) return {};
  const lines = readFileSync(file, "utf8").matchAll(/^\s*([A-Z][A-Z0-9_]*)\s*=\s*(.*?)\s*$/gm);
  return Object.fromEntries(Array.from(lines, ([, name, value]) => [name, value.replace(/^(["'])(.*)\1$/, "$2")]));
}

/** Writes .dev.vars with random secrets if it does not exist. */
export function ensureDevVars() {
  if (existsSync(file)) return;
  const lines = [
    "# Secrets for running on this machine. Written once by the scripts; git ignores the file.",
    `ADMIN_TOKEN="${randomBytes(32).toString("base64url")}"`,
    `SIGNING_KEYS="k1:${randomBytes(32).toString("base64")}"`,
  ];
  writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o600, flag: "wx" });
  say("wrote .dev.vars with random secrets (ADMIN_TOKEN, SIGNING_KEYS)");
}

/** The first of the admin tokens: during a rotation there are several, comma-separated. */
export function adminToken() {
  const token = readDevVars().ADMIN_TOKEN?.split(",")[0].trim();
  if (!token) throw new Stop(".dev.vars has no ADMIN_TOKEN: add one of 32 or more characters, or delete the file to get a new one.");
  return token;
}
