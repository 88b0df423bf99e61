// A server that runs for as long as we do: start it, wait until it answers, stop it with us.
// Never leaves a process behind: the server gets its own process group, and all of it is ended.
// (package.json says "exec node …" so that a SIGTERM to npm arrives here, not at a shell in between.)

import { spawn } from "node:child_process";
import { untilHealthy } from "./net.mjs";
import { exitCodeOf } from "./run.mjs";

/**
 * Starts a program as the head of its own process group, so that `end` reaches everything it
 * started and Ctrl-C reaches only us. `exited` resolves to its exit code.
 */
export function spawnGroup(program, args, options) {
  const child = spawn(program, args, { detached: true, ...options });
  const exited = new Promise((resolve) => {
    child.on("error", () => resolve(127));
    child.on("exit", (code, signal) => resolve(code ?? exitCodeOf(signal)));
  });

  const killGroup = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // Nobody is left in it.
    }
  };

  /** Asks the program to end and to end its children; what is left then, or after `graceMs`, is killed. */
  async function end(graceMs = 5000) {
    child.kill("SIGTERM");
    const timer = setTimeout(killGroup, graceMs);
    await exited;
    clearTimeout(timer);
    killGroup();
  }

  return { pid: child.pid, stdout: child.stdout, exited, end };
}

/**
 * Waits until `server` answers on `base`, calls `whenReady`, and waits for Ctrl-C, SIGTERM or the
 * server's own end. Resolves to null if it was stopped, else to the code it ended with.
 */
export async function attend(server, base, whenReady) {
  let asked = false;
  const stopped = new Promise((resolve) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      process.on(name, () => {
        asked = true;
        resolve();
      });
    }
  });
  const over = Promise.race([stopped, server.exited]);
  try {
    if (await untilHealthy(base, over)) await whenReady();
    await over;
  } finally {
    await server.end();
  }
  return asked ? null : server.exited;
}
