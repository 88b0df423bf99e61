// What the processes of a contender have used: CPU time and memory of everything in its process group.
// Linux only; elsewhere the figures are null, and the report leaves them out.

import { readdirSync, readFileSync } from "node:fs";
import { ask } from "../../scripts/lib/run.mjs";

const isLinux = process.platform === "linux";
const TICK_MS = isLinux ? 1000 / Number(ask("getconf", ["CLK_TCK"]) ?? 100) : null;

/** The fields of /proc/PID/stat from the third on, of each process of the group. */
function statsOf(group) {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        // The command's name may hold blanks and brackets: what follows the last one is regular.
        const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        return Number(fields[2]) === group ? [{ pid, fields }] : [];
      } catch {
        return []; // It ended meanwhile.
      }
    });
}

/** CPU milliseconds used so far; its grain is a tick of the kernel, 10 ms as a rule. */
export function cpuMs(group) {
  if (!isLinux) return null;
  return statsOf(group).reduce((sum, { fields }) => sum + (Number(fields[11]) + Number(fields[12])) * TICK_MS, 0);
}

/** Resident memory in MiB. */
export function residentMiB(group) {
  if (!isLinux) return null;
  const kib = ({ pid }) => Number(readFileSync(`/proc/${pid}/status`, "utf8").match(/^VmRSS:\s+(\d+)/m)?.[1] ?? 0);
  return statsOf(group).reduce((sum, stat) => sum + kib(stat), 0) / 1024;
}

/** Files and sockets that a process we start may have open at once. */
export const mostFiles = () => Number(ask("sh", ["-c", "ulimit -n"])) || Infinity;

/** Who is not measured must not run: some contenders are busy even when nobody calls. */
export const pause = (group) => signal(group, "SIGSTOP");
export const resume = (group) => signal(group, "SIGCONT");

function signal(group, name) {
  try {
    process.kill(-group, name);
  } catch {
    // It has ended, which whoever calls it will notice.
  }
}
