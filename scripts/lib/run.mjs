// Child processes: run one to its end, or ask one for a line.
// Never goes through a shell, so no argument is ever re-parsed.

import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { Stop } from "./say.mjs";

/** Whether a program of that name can be run from PATH. */
export function onPath(name) {
  return (process.env.PATH ?? "").split(delimiter).some((dir) => {
    try {
      accessSync(join(dir, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** A program's output without the last newline, or null if it could not run or failed. */
export function ask(program, args) {
  const { status, stdout } = spawnSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return status === 0 ? stdout.trim() : null;
}

/**
 * Runs a program to its end with its output passed through. Resolves to `{ code, output }`;
 * `output` is what it wrote to stdout, kept only with `keep`.
 */
export function run(program, args, { keep = false, ...options } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", keep ? "pipe" : "inherit", "inherit"], ...options });
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text) => {
      output += text;
      process.stdout.write(text);
    });
    child.on("error", (error) => reject(new Stop(`Could not run ${program}: ${error.message}.`)));
    child.on("close", (code, signal) => resolve({ code: code ?? exitCodeOf(signal), output }));
  });
}

/** Like `run`, for a step that must succeed: `failure` is the sentence for when it does not. */
export async function must(failure, program, args, options) {
  const { code } = await run(program, args, options);
  if (code !== 0) throw new Stop(failure);
}

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15 };
export const exitCodeOf = (signal) => 128 + (SIGNAL_NUMBERS[signal] ?? 0);
