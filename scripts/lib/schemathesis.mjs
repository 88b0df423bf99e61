// Where schemathesis comes from: the user's own if it is the right one, else a virtual environment in the per-user cache.
// Never installs into anyone's Python, and never takes longer than a minute or two to find that it can't.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toolCache } from "./paths.mjs";
import { ask } from "./run.mjs";
import { say } from "./say.mjs";

/** What tests/fuzz was written for. Later releases of the same major version read the same configuration. */
const VERSION = "4.32.5";
const [MAJOR, LEAST_MINOR] = VERSION.split(".").map(Number);
const LEAST_PYTHON_MINOR = 10;
const VENV_LIMIT_MS = 60_000;
const PIP_LIMIT_MS = 120_000;

const venv = join(toolCache, `schemathesis-${VERSION}`);
const installed = join(venv, "bin", "schemathesis");
// Written last: an install that was interrupted is done again.
const stamp = join(venv, ".installed");

/** `{ program }`, or `{ why }` it can't be had, as the end of a sentence. */
export function findSchemathesis() {
  if (existsSync(stamp)) return { program: installed };
  if (isRight(ask("schemathesis", ["--version"]))) return { program: "schemathesis" };
  const python = ["python3", "python"].find(isModern);
  if (!python) return { why: `there is no Python 3.${LEAST_PYTHON_MINOR} or newer` };
  return install(python) ? { program: installed } : { why: `pip could not install schemathesis ${VERSION}` };
}

/** `schemathesis, version 4.32.5`; its first word is the name that it was called by. */
function isRight(answer) {
  const [, major, minor] = answer?.match(/version (\d+)\.(\d+)/)?.map(Number) ?? [];
  return major === MAJOR && minor >= LEAST_MINOR;
}

function isModern(python) {
  const [, minor] =
    ask(python, ["--version"])
      ?.match(/^Python 3\.(\d+)/)
      ?.map(Number) ?? [];
  return minor >= LEAST_PYTHON_MINOR;
}

function install(python) {
  say(`installing schemathesis ${VERSION} into ${venv} (once per user)`);
  mkdirSync(toolCache, { recursive: true });
  rmSync(venv, { recursive: true, force: true });
  const done =
    succeeds(python, ["-m", "venv", venv], VENV_LIMIT_MS) &&
    succeeds(
      join(venv, "bin", "python"),
      [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "1",
        "--timeout",
        "10",
        `schemathesis==${VERSION}`,
      ],
      PIP_LIMIT_MS,
    );
  if (done) writeFileSync(stamp, "");
  else rmSync(venv, { recursive: true, force: true });
  return done;
}

const succeeds = (program, args, timeout) =>
  spawnSync(program, args, { timeout, stdio: ["ignore", "inherit", "inherit"] }).status === 0;
