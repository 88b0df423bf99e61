// Calls as odd clients send them, over raw sockets.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { serve, sleep } from "./support.mjs";

let server;
let source;

before(async () => {
  server = await serve();
  source = await server.createSource("odd", { concurrency: { limit: 1000, max: 1000 } });
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
