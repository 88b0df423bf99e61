// Calls as odd clients send them, over raw sockets.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ADMIN_TOKEN, serve, sleep } from "./support.mjs";

let server;
let source;
/** Bodies that are begun and never ended: what came of them, and when. They take their time beside the other tests. */
let unended;

before(async () => {
  server = await serve();
  source = await server.createSource("odd", { concurrency: { limit: 1000, max: 1000 } });
  const lock = (key) => ["POST /pools/odd/lock/acquire HTTP/1.1", `X-Swarmvia-Key: ${key}`];
  unended = {
    strangers: half(["POST /pools/odd/keys/refresh HTTP/1.1"], 15_000),
    acquire: half(lock(source.key), 40_000),
    operators: half(["POST /pools/odd/explain HTTP/1.1", `Authorization: Bearer ${ADMIN_TOKEN}`], 40_000),
  };
});
after(() => server.end());

/** Sends a head and a body as they are, and reads the answer to its end. */
async function send(requestLine, headers = [], body = "") {
  const head = [requestLine, "Host: 127.0.0.1", `X-Swarmvia-Key: ${source.key}`, "Connection: close", ...headers];
  return parse(await server.raw(`${head.join("\r\n")}\r\n\r\n${body}`).answer);
}

function parse(text) {
  const [head, body] = text.split(/\r\n\r\n(.*)/s);
  const status = Number(head.match(/^HTTP\/1\.1 (\d{3})/)?.[1]);
  const json = body?.slice(body.indexOf("{"), body.lastIndexOf("}") + 1);
  return { status, head, body: json ? JSON.parse(json) : undefined };
}

/** Sends `lines` and half of a body, once with a length and once in chunks. */
function half([requestLine, ...headers], patience) {
  return Promise.all(
    [["Content-Length: 20", '{"ref'], ["Transfer-Encoding: chunked", '5\r\n{"ref']].map(async ([framing, body]) => {
      const began = Date.now();
      const head = [requestLine, "Host: 127.0.0.1", ...headers, framing];
      const answer = parse(await server.raw(`${head.join("\r\n")}\r\n\r\n${body}`, patience).answer);
      return { ...answer, took: Date.now() - began };
    }),
  );
}

const ACQUIRE = "POST /pools/odd/lock/acquire HTTP/1.1";
const chunk = (text) => `${text.length.toString(16)}\r\n${text}\r\n`;
const held = async () => (await server.state(source)).inUse;

test("a POST with neither body, nor length, nor content type is granted", async () => {
  assert.equal((await send(ACQUIRE)).status, 200);
  assert.equal((await send(ACQUIRE, ["Content-Length: 0"])).status, 200);
});

test("the content type is not looked at", async () => {
  for (const type of ["application/x-www-form-urlencoded", "text/plain", "nonsense", ""]) {
    assert.equal((await send(ACQUIRE, [`Content-Type: ${type}`, "Content-Length: 12"], '{"waitMs":0}')).status, 200, type);
  }
});

test("a chunked body is read as any other", async () => {
  const body = `${chunk('{"waitMs"')}${chunk(":5}")}0\r\n\r\n`;
  assert.equal((await send(ACQUIRE, ["Transfer-Encoding: chunked"], body)).status, 200);
  assert.equal((await send(ACQUIRE, ["Transfer-Encoding: chunked"], "0\r\n\r\n")).status, 200);
});

test("a chunked body over 64 KiB is 413, and takes no slot", async () => {
  const before = await held();
  const body = `${chunk("{}")}${chunk(" ".repeat(40_000)).repeat(2)}0\r\n\r\n`;
  const answer = await send(ACQUIRE, ["Transfer-Encoding: chunked"], body);
  assert.deepEqual([answer.status, answer.body?.error], [413, "payload_too_large"]);
  assert.equal(await held(), before);
});

test("a declared length over 64 KiB is 413 before anything of the body is sent", async () => {
  for (const length of ["65537", "1000000000"]) {
    const { socket, answer } = server.raw(`${ACQUIRE}\r\nHost: 127.0.0.1\r\nContent-Length: ${length}\r\n\r\n`);
    const first = await new Promise((resolve) => socket.once("data", resolve));
    assert.deepEqual([parse(first).status], [413]);
    socket.destroy();
    await answer;
  }
});

test("a name that is percent-encoded is no name: 404", async () => {
  for (const path of [
    "/pools/%6fdd/lock/acquire",
    "/pools/o%64d/lock/acquire",
    "/pools/odd%2flock/acquire",
    "/%70ools/odd/lock/acquire",
    "/pools/odd/%6cock/acquire",
    "/pools/odd%00/lock/acquire",
    "/pools/ODD/lock/acquire",
  ]) {
    const answer = await send(`POST ${path} HTTP/1.1`);
    assert.deepEqual([answer.status, answer.body?.error], [404, "not_found"], path);
  }
});

test("a path that climbs is no way to another source", async () => {
  const before = await held();
  for (const path of [
    "/pools/other/../odd/x",
    "/pools/odd/lock/../../../etc",
    "/pools/odd/lock/..%2facquire",
    "/./pools//odd/lock/acquire",
  ]) {
    assert.equal((await send(`POST ${path} HTTP/1.1`)).status, 404, path);
  }
  assert.equal(await held(), before);
});

test("the host decides, not the path: a source's own host and an unknown one are 404", async () => {
  for (const host of ["odd.swarmvia.cloud", "evil.example", "127.0.0.1.evil.example"]) {
    const text = `${ACQUIRE}\r\nHost: ${host}\r\nX-Swarmvia-Key: ${source.key}\r\nConnection: close\r\n\r\n`;
    assert.equal(parse(await server.raw(text).answer).status, 404, host);
  }
  const text = `${ACQUIRE}\r\nHost: LOCALHOST:${server.port}\r\nX-Swarmvia-Key: ${source.key}\r\nConnection: close\r\n\r\n`;
  assert.equal(parse(await server.raw(text).answer).status, 200);
});

test("a header that comes twice, or is endless, takes no slot and gets a clear answer", async () => {
  const before = await held();
  for (const headers of [
    ["X-Swarmvia-Queue-Timeout-Ms: 1", "X-Swarmvia-Queue-Timeout-Ms: 2"],
    ["Idempotency-Key: a", "Idempotency-Key: b c"],
    [`Idempotency-Key: ${"x".repeat(5000)}`],
  ]) {
    const answer = await send(ACQUIRE, headers);
    assert.deepEqual([answer.status, answer.body?.error], [400, "invalid_request"]);
  }
  assert.equal((await send(ACQUIRE, [`X-Swarmvia-Key: ${source.key}x`])).status, 401);
  assert.equal(await held(), before);
});

test("a body that breaks off leaves nothing held and the server well", async () => {
  const before = await held();
  for (const framing of ["Content-Length: 100", "Transfer-Encoding: chunked"]) {
    const { socket, answer } = server.raw(
      `${ACQUIRE}\r\nHost: 127.0.0.1\r\nX-Swarmvia-Key: ${source.key}\r\n${framing}\r\n\r\n${framing.startsWith("C") ? '{"wa' : "5\r\n{"}`,
    );
    await new Promise((resolve) => setTimeout(resolve, 100));
    socket.resetAndDestroy();
    await answer;
  }
  assert.equal((await send(ACQUIRE)).status, 200);
  assert.equal(await held(), before + 1);
});

test("calls on one connection are answered one after another", async () => {
  const text = `${ACQUIRE}\r\nHost: 127.0.0.1\r\nX-Swarmvia-Key: ${source.key}\r\n`;
  const answer = await server.raw(`${text}\r\n${text}\r\n${text}Connection: close\r\n\r\n`).answer;
  assert.equal(answer.match(/HTTP\/1\.1 200/g)?.length, 3);
  assert.equal(new Set(answer.match(/"slotId":"[^"]+"/g)).size, 3);
});

test("a key that expires while the body trickles in gets no slot", async () => {
  const minted = await server.admin("POST", `/pools/${source.name}/keys`, { ttlMs: 1000 });
  const before = await held();
  const head = [ACQUIRE, "Host: 127.0.0.1", `X-Swarmvia-Key: ${minted.body.accessKey}`, "Connection: close", "Content-Length: 2"];
  const call = server.raw(`${head.join("\r\n")}\r\n\r\n{`);
  await sleep(1500);
  call.socket.write("}");
  assert.equal(parse(await call.answer).status, 401);
  assert.equal(await held(), before);
});

const asAdmin = [`Authorization: Bearer ${ADMIN_TOKEN}`];
const bare = async (requestLine, headers = []) =>
  parse(await server.raw(`${[requestLine, ...headers, "Connection: close"].join("\r\n")}\r\n\r\n`).answer);

test("a Host that is none decides nothing: 400", async () => {
  for (const host of [
    "localhost/pools?x=", "localhost/pools", "localhost/", "localhost?x", "localhost#x", "localhost\\pools", "a@localhost",
    "localhost@evil.example", "a:b@localhost", "local host", "localhost\tx", "localhost:abc", "localhost:99999", "localhost:80:80",
    "localhost:80/pools", "[::1", "[::1]/pools", "%6cocalhost", "localhost%2fpools", "localhost, evil.example", "l\u00f6calhost",
  ]) {
    for (const path of ["/healthz", "/pools"]) {
      const answer = await bare(`GET ${path} HTTP/1.1`, [`Host: ${host}`, ...asAdmin]);
      assert.deepEqual([answer.status, answer.body?.error, answer.body?.field], [400, "invalid_request", "Host"], `${host} ${path}`);
    }
  }
  const twice = await bare("GET /healthz HTTP/1.1", ["Host: localhost", "Host: evil.example"]);
  assert.equal(twice.status, 400);
  assert.equal((await bare("GET /healthz HTTP/1.1")).status, 400);
});

test("a Host in any form that a host may have is one", async () => {
  for (const host of ["localhost", "LocalHost:1", "localhost:", "127.0.0.1:65535"]) {
    assert.equal((await bare("GET /healthz HTTP/1.1", [`Host: ${host}`])).status, 200, host);
  }
  for (const host of ["[::1]", "[::1]:8787", "localhost.", "a_b.example"]) {
    assert.equal((await bare("GET /healthz HTTP/1.1", [`Host: ${host}`])).status, 404, host);
  }
});

test("HEAD answers as GET does, without the body", async () => {
  const headers = (head) =>
    head.split("\r\n").filter((line) => !/^(x-swarmvia-request-id|connection):|^HTTP/i.test(line)).map((line) => line.toLowerCase()).sort();
  const paths = ["/healthz", "/openapi.json", "/dashboard", "/docs", "/pools", "/pools/odd/keys", "/pools/odd/slots", "/pools/odd/audit?limit=2", "/pools/none", "/nothing"];
  for (const path of paths) {
    for (const credentials of [asAdmin, []]) {
      const [got, head] = await Promise.all(["GET", "HEAD"].map((method) => bare(`${method} ${path} HTTP/1.1`, ["Host: localhost", ...credentials])));
      assert.equal(head.status, got.status, path);
      assert.deepEqual(headers(head.head), headers(got.head), path);
      assert.equal(head.body, undefined, path);
    }
  }
  for (const path of ["/metrics", "/pools/odd", "/pools/odd/log"]) {
    assert.equal((await bare(`HEAD ${path} HTTP/1.1`, ["Host: localhost", ...asAdmin])).status, 200, path);
    assert.equal((await bare(`HEAD ${path} HTTP/1.1`, ["Host: localhost"])).status, 401, path);
  }
});

test("a method that no route has is 405 or unknown to the server, and never a fault of ours", async () => {
  for (const method of ["TRACE", "PROPFIND", "OPTIONS", "PATCH", "DELETE", "QUERY"]) {
    const answer = await bare(`${method} /healthz HTTP/1.1`, ["Host: localhost"]);
    assert.deepEqual([answer.status, answer.body?.error], [405, "method_not_allowed"], method);
    assert.match(answer.head, /^allow: GET, HEAD$/im, method);
  }
  // Bare workerd answers these by itself.
  for (const method of ["get", "FOO"]) assert.equal((await bare(`${method} /healthz HTTP/1.1`, ["Host: localhost"])).status, 501, method);
  assert.equal((await bare("OPTIONS * HTTP/1.1", ["Host: localhost"])).status, 404);
});

test("CONNECT is no fault: the connection is closed, and nothing goes through it", async () => {
  for (const target of ["localhost:80", `127.0.0.1:${server.port}`, "/"]) {
    const { socket, answer } = server.raw(`CONNECT ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const came = await answer;
    assert.doesNotMatch(came, /HTTP\/1\.1 5/, target);
    assert.doesNotMatch(came, /"ok":true/, target);
  }
  assert.equal((await bare("GET /healthz HTTP/1.1", ["Host: localhost"])).status, 200);
});

test("a header that is empty guards nothing by being overlooked", async () => {
  for (const [header, status, field] of [
    ["Idempotency-Key", 400, "Idempotency-Key"],
    ["X-Swarmvia-Queue-Timeout-Ms", 400, "X-Swarmvia-Queue-Timeout-Ms"],
    ["X-Swarmvia-No-Queue", 200],
  ]) {
    const answer = await send(ACQUIRE, [`${header}:`]);
    assert.deepEqual([answer.status, answer.body?.field], [status, field], header);
  }
  // An empty key wins over a good one elsewhere, and is bad.
  const empty = await bare(ACQUIRE, ["Host: localhost", "X-Swarmvia-Key:", `Authorization: Bearer ${source.key}`]);
  assert.equal(empty.status, 401);
  assert.equal((await bare("GET /pools HTTP/1.1", ["Host: localhost", "Authorization:"])).status, 401);
});

test("every answer has an id of its own and is not to be sniffed, whoever made it", async () => {
  const ids = new Set();
  const calls = [
    ["GET /healthz"], ["GET /metrics", ...asAdmin], ["GET /metrics", ...asAdmin], ["GET /metrics"], ["GET /pools", ...asAdmin],
    ["GET /pools/odd", ...asAdmin], ["GET /pools/none", ...asAdmin], ["GET /dashboard"], ["GET /nothing"], ["PATCH /pools", ...asAdmin],
    ["POST /pools/odd/lock/acquire", `X-Swarmvia-Key: ${source.key}`], ["POST /pools/odd/lock/acquire"], ["POST /pools/odd/keys/refresh"],
  ];
  for (const [line, ...headers] of calls) {
    // Not each of them is JSON.
    const [head] = (await server.raw(`${[`${line} HTTP/1.1`, "Host: localhost", ...headers, "Connection: close"].join("\r\n")}\r\n\r\n`).answer).split("\r\n\r\n");
    assert.match(head, /^x-content-type-options: nosniff\r?$/im, line);
    ids.add(head.match(/^x-swarmvia-request-id: ([0-9a-f]{32})\r?$/im)?.[1]);
  }
  assert.equal(ids.size, calls.length);
  assert.ok(!ids.has("0".repeat(32)) && !ids.has(undefined));
});

test("a stranger's body that isn't at its end in 10 s is 408, and the connection is closed", async () => {
  for (const { status, body, took } of await unended.strangers) {
    assert.deepEqual([status, body?.error], [408, "request_timeout"]);
    assert.ok(took > 9000 && took < 14_000, `${took} ms`);
  }
});

test("a body of someone with a good credential has 30 s; an acquire is logged once", async () => {
  for (const { status, body, took } of [...(await unended.acquire), ...(await unended.operators)]) {
    assert.deepEqual([status, body?.error], [408, "request_timeout"]);
    assert.ok(took > 29_000 && took < 35_000, `${took} ms`);
  }
  const id = (await unended.acquire)[0].head.match(/^x-swarmvia-request-id: (\w+)/im)[1];
  const { entries } = (await server.admin("GET", `/pools/odd/log?requestId=${id}`)).body;
  assert.deepEqual(entries.map(({ outcome, status }) => [outcome, status]), [["request_timeout", 408]]);
});
