// The native core: instructions of a governor's step under callgrind where valgrind is there, wall time otherwise.
// Instructions are the same in every run; between versions of Rust they differ, so a committed number says which it is of.

import { spawnSync } from "node:child_process";
import { inRoot } from "../scripts/lib/paths.mjs";
import { ask, onPath } from "../scripts/lib/run.mjs";
import { Stop } from "../scripts/lib/say.mjs";

const STEPS = 500;

export const hasValgrind = () => onPath("valgrind");
/** The compiler and the machine that a number of instructions belongs to. */
export const compiler = () => `${ask("rustc", ["--version"])?.split(" ")[1]} ${process.arch}`;

function program(...args) {
  const { status, stdout, stderr } = spawnSync(args[0], args.slice(1), { cwd: inRoot(), encoding: "utf8", maxBuffer: 1 << 26 });
  if (status !== 0) throw new Stop(`${args[0]} failed:\n${stderr}`);
  return { stdout, stderr };
}

function executable() {
  const { stdout } = program("cargo", "bench", "--locked", "--bench", "steps", "--no-run", "--message-format=json");
  const built = stdout.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
  return built.find((message) => message.target?.name === "steps" && message.executable).executable;
}

/** Instructions of a step by case, e.g. `{ "pair-10": 1234 }`. */
export function instructions() {
  const steps = executable();
  const cases = program(steps, "--list").stdout.trim().split("\n");
  return Object.fromEntries(cases.map((name) => [name, ofCase(steps, name)]));
}

function ofCase(steps, name) {
  const { stderr } = program(
    ...["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*measured_steps*"],
    ...[steps, "--case", name, "--steps", String(STEPS)],
  );
  const collected = Number(stderr.match(/Collected\s*:\s*(\d+)/)?.[1] ?? 0);
  if (collected === 0) throw new Stop(`callgrind counted nothing in ${name}: it did not find measured_steps.`);
  return Math.round(collected / STEPS);
}

/** Nanoseconds of a step by case. */
export function nanoseconds() {
  const lines = program(executable()).stdout.trim().split("\n");
  return Object.fromEntries(lines.map((line) => line.split(" ")).map(([name, ns]) => [name, Number(ns)]));
}
