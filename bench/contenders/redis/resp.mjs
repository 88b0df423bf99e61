// A connection to Redis that sends commands as they come and hands each reply to who asked: RESP2, no more than the bench needs.

import { connect } from "node:net";
import { once } from "node:events";

export async function openRedis(port) {
  const socket = connect({ host: "127.0.0.1", port });
  await once(socket, "connect");
  socket.setNoDelay(true);
  socket.setEncoding("utf8");
  const asked = [];
  let came = "";
  socket.on("data", (chunk) => {
    came += chunk;
    let at = 0;
    for (let reply; asked.length > 0 && (reply = read(came, at)); at = reply.end) {
      const { resolve, reject } = asked.shift();
      if (reply.value instanceof Error) reject(reply.value);
      else resolve(reply.value);
    }
    came = came.slice(at);
  });
  /** `args` are strings or numbers in ASCII. */
  return (...args) =>
    new Promise((resolve, reject) => {
      asked.push({ resolve, reject });
      socket.write(`*${args.length}\r\n${args.map((arg) => `$${String(arg).length}\r\n${arg}\r\n`).join("")}`);
    });
}

/** The reply that begins at `at`, with where it ends; null if it isn't whole. */
function read(text, at) {
  const line = text.indexOf("\r\n", at);
  if (line < 0) return null;
  const rest = text.slice(at + 1, line);
  let end = line + 2;
  switch (text[at]) {
    case ":":
      return { value: Number(rest), end };
    case "+":
      return { value: rest, end };
    case "-":
      return { value: new Error(rest), end };
    case "$": {
      if (rest === "-1") return { value: null, end };
      const after = end + Number(rest) + 2;
      return text.length < after ? null : { value: text.slice(end, after - 2), end: after };
    }
    default: {
      const value = [];
      for (let left = Number(rest); left > 0; left -= 1) {
        const item = read(text, end);
        if (!item) return null;
        value.push(item.value);
        end = item.end;
      }
      return { value, end };
    }
  }
}
