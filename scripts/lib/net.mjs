// Ports and waiting: is a port taken, which one is free, does the server answer yet.
// Never talks to another machine.

import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Stop } from "./say.mjs";

const POLL_MS = 100;

export function parsePort(text, how) {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 1 && port <= 65535) return port;
  throw new Stop(`"${text}" is not a port: give a number from 1 to 65535, e.g. ${how}`);
}

/** Throws a sentence if anything listens on the port, on IPv4 or IPv6: "localhost" may be either. */
export async function mustBeFree(port, how) {
  const taken = await Promise.all(["127.0.0.1", "::1"].map((host) => answers(host, port)));
  if (taken.includes(true)) throw new Stop(`Port ${port} is taken: stop what uses it or choose another, e.g. ${how}`);
}

function answers(host, port) {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Resolves to true once GET {base}/healthz answers 200; to false when `exited` settles first. */
export async function untilHealthy(base, exited) {
  let gone = false;
  exited.then(() => (gone = true));
  while (!gone) {
    try {
      const answer = await fetch(`${base}/healthz`);
      await answer.arrayBuffer();
      if (answer.status === 200) return true;
    } catch {
      // Not listening yet.
    }
    await sleep(POLL_MS);
  }
  return false;
}
