// A key set server on loopback for the tests: vitest starts it once, before all of them.
// A test says what a set is (PUT /sets/NAME), and asks how often it was fetched (GET /hits/NAME).

import { createServer } from "node:http";
import { text } from "node:stream/consumers";

/** What a set is when no test said anything: there is none. */
const MISSING = { status: 404, headers: {}, body: "" };

export default async function serveKeySets({ provide }) {
  const sets = new Map();
  const hits = new Map();
  const server = createServer(async (request, response) => {
    const [, room, name] = request.url.split("?")[0].split("/");
    if (room === "hits") return response.end(String(hits.get(name) ?? 0));
    if (request.method === "PUT") {
      sets.set(name, JSON.parse(await text(request)));
      return response.end();
    }
    hits.set(name, (hits.get(name) ?? 0) + 1);
    answer(response, { ...MISSING, ...sets.get(name) });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  provide("keyServer", `http://127.0.0.1:${server.address().port}`);
  return () => {
    server.closeAllConnections();
    server.close();
  };
}

/** `fault`: "down" breaks the connection, "hang" never answers, "stall" stops in the body, "endless" never ends it. */
function answer(response, { status, headers, body, fault, delayMs = 0 }) {
  if (fault === "down") return response.destroy();
  if (fault === "hang") return;
  response.writeHead(status, headers);
  if (fault === "stall") return response.write(body.slice(0, 10));
  if (fault === "endless") return endless(response);
  setTimeout(() => response.end(body), delayMs);
}

function endless(response) {
  const more = () => {
    while (!response.destroyed && response.write(" ".repeat(16_384)));
  };
  response.on("drain", more);
  more();
}
