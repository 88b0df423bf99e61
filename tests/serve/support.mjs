// What the serve tests share: a bare workerd of their own, and calls over real sockets.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../scripts/lib/net.mjs";
import { startServe } from "../../scripts/lib/serve.mjs";

export { sleep };

export const ADMIN_TOKEN = "serve-test-admin-token-serve-test-0";
export const SIGNING_KEYS = "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/**
 * A server on a data folder of its own. `kill` ends it as a crash would, `start` brings it back on the same port.
 * `outDir` is the build that it runs.
 */
export async function serve(env = { ADMIN_TOKEN, SIGNING_KEYS }, outDir = "build") {
  const data = await mkdtemp(join(tmpdir(), "swarmvia-serve-"));
  const port = await freePort();
  const shared = new Agent({ keepAlive: true });
  let server;

  const self = {
    port,
    data,
    get pid() {
      return server.pid;
    },
    async start() {
      server = await startServe({ port, data, env, outDir, output: "ignore" });
    },
    async kill() {
      process.kill(server.pid, "SIGKILL");
      await server.exited;
    },
    async end() {
      shared.destroy();
      await server.end();
      await rm(data, { recursive: true, force: true });
    },

    /** One call; `body` goes out as it is. Rejects when the connection is lost. */
    call(method, path, { headers = {}, body, agent = shared } = {}) {
      const sent = body === undefined ? headers : { "Content-Length": Buffer.byteLength(body), ...headers };
      return new Promise((resolve, reject) => {
        const call = request({ host: "127.0.0.1", port, method, path, headers: sent, agent }, async (response) => {
          try {
            let text = "";
            for await (const chunk of response.setEncoding("utf8")) text += chunk;
            resolve({ status: response.statusCode, headers: response.headers, body: JSON.parse(text) });
          } catch (error) {
            reject(error);
          }
        });
        call.on("error", reject);
        call.end(body);
      });
    },

    admin: (method, path, body) =>
      self.call(method, path, { headers: { Authorization: `Bearer ${ADMIN_TOKEN}` }, body: body && JSON.stringify(body) }),

    async createSource(name, settings = {}) {
      assert.equal((await self.admin("PUT", `/pools/${name}`, settings)).status, 201);
      const minted = await self.admin("POST", `/pools/${name}/keys`, {});
      assert.equal(minted.status, 201);
      return { name, key: minted.body.accessKey, keyId: minted.body.keyId };
    },

    async state(source) {
      return (await self.admin("GET", `/pools/${source.name}`)).body.state;
    },

    async untilDepth(source, depth) {
      for (let tries = 0; (await self.state(source)).queueDepth !== depth; tries += 1) {
        assert.ok(tries < 500, `the queue of ${source.name} never had ${depth} waiters`);
        await sleep(10);
      }
    },

    lock: (source, path, body, headers = {}, agent = shared) =>
      self.call("POST", `/pools/${source.name}/lock/${path}`, {
        headers: { "X-Swarmvia-Key": source.key, ...headers },
        body: body && JSON.stringify(body),
        agent,
      }),
    acquire: (source, body, headers, agent) => self.lock(source, "acquire", body, headers, agent),
    renew: (source, slot) => self.lock(source, `${slot.slotId}/renew`),
    release: (source, slot, report) => self.lock(source, `${slot.slotId}/release`, report),

    async grant(source, body, headers) {
      const answer = await self.acquire(source, body, headers);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return answer.body;
    },

    /** A connection that sends `text` as it is. `answer` is what came until it was closed, or `patience` ms passed. */
    raw(text, patience = 2000) {
      const socket = connect({ host: "127.0.0.1", port });
      const answer = new Promise((resolve) => {
        let came = "";
        socket.setEncoding("latin1").on("data", (chunk) => (came += chunk));
        socket.on("error", () => {});
        socket.on("close", () => resolve(came));
        setTimeout(() => socket.destroy(), patience).unref();
      });
      socket.write(text);
      return { socket, answer };
    },
  };
  await self.start();
  return self;
}

/** The text of a lock call, for `raw`. */
export function lockText(source, body, headers = []) {
  const lines = [`POST /pools/${source.name}/lock/acquire HTTP/1.1`, "Host: 127.0.0.1", `X-Swarmvia-Key: ${source.key}`, ...headers];
  return `${[...lines, `Content-Length: ${Buffer.byteLength(body)}`].join("\r\n")}\r\n\r\n${body}`;
}

/** Counts who holds something now. */
export function tally() {
  const counts = { held: 0, most: 0 };
  return {
    enter() {
      counts.held += 1;
      counts.most = Math.max(counts.most, counts.held);
    },
    leave() {
      counts.held -= 1;
    },
    get most() {
      return counts.most;
    },
  };
}
