// The IP allowlist: which addresses a range admits, in whatever form they come.

import { expect, test } from "vitest";
import { acquire, API, call, configure, createSource, expectError, type Source } from "./support";

const from = (source: Source, address?: string) => acquire(source, { headers: address === undefined ? {} : { "CF-Connecting-IP": address } });

test.each<[string, string[], string[]]>([
  ["192.0.2.0/24", ["192.0.2.0", "192.0.2.255", "::ffff:192.0.2.7", "::ffff:c000:207"], ["192.0.1.255", "192.0.3.0", "::192.0.2.7", "::1"]],
  ["192.0.2.77/24", ["192.0.2.0", "192.0.2.255"], ["192.0.3.0"]],
  ["192.0.2.1", ["192.0.2.1", " 192.0.2.1 "], ["192.0.2.0", "192.0.2.2"]],
  ["192.0.2.1/32", ["192.0.2.1"], ["192.0.2.0", "192.0.2.2"]],
  ["0.0.0.0/0", ["0.0.0.0", "255.255.255.255", "::ffff:1.2.3.4"], ["::1", "2001:db8::1"]],
  ["203.0.113.9/0", ["198.51.100.1"], ["::1"]],
  ["2001:db8::/32", ["2001:db8::", "2001:DB8:ffff::1", "2001:0db8:0000::0001"], ["2001:db7:ffff::", "2001:db9::", "192.0.2.1"]],
  ["2001:db8::dead/32", ["2001:db8::1"], ["2001:db9::"]],
  ["2001:db8::1/128", ["2001:db8::1", "2001:db8:0:0:0:0:0:1"], ["2001:db8::2"]],
  ["::/0", ["::", "2001:db8::1"], ["192.0.2.1", "::ffff:192.0.2.1"]],
  ["::ffff:192.0.2.0/120", ["192.0.2.9", "::ffff:192.0.2.9"], ["192.0.3.0"]],
])("%s admits what is in it and nothing else", async (range, admitted, refused) => {
  const source = await createSource({ concurrency: { limit: 100 }, access: { ipAllowlist: [range] } });
  for (const address of admitted) expect((await from(source, address)).status, address).toBe(200);
  for (const address of refused) expectError(await from(source, address), 403, "unauthorized");
});

test("what is no plain address is none, and not admitted by the widest list", async () => {
  const source = await createSource({ access: { ipAllowlist: ["0.0.0.0/0", "::/0"] } });
  const none = ["", "unknown", "192.0.2", "192.0.2.256", "192.0.2.01", "010.0.0.1", "0x7f.0.0.1", "3221225985"];
  const more = ["192.0.2.1:80", "[2001:db8::1]", "[2001:db8::1]:80", "fe80::1%eth0", "::1%1", "192.0.2.1/32", "192.0.2.1, 192.0.2.2"];
  for (const address of [undefined, ...none, ...more]) expectError(await from(source, address), 403, "unauthorized");
});

test.each([
  "192.0.2.0/33",
  "192.0.2.0/",
  "192.0.2.0/-1",
  "192.0.2.0/08",
  "192.0.2.0/255.255.255.0",
  "192.0.2.00/24",
  "010.0.0.0/8",
  "192.0.2/24",
  "2001:db8::/129",
  "fe80::%eth0/64",
  "fe80::1%eth0",
  "::ffff:0:0/95",
  "example.com",
  "*",
  "",
])("the range %j is 400, and the error says which entry", async (range) => {
  const answer = await configure({ name: "never" }, { access: { ipAllowlist: ["192.0.2.1", range] } });
  expectError(answer, 400, "invalid_request", { field: "access.ipAllowlist" });
  expect(answer.body.message).toContain("access.ipAllowlist[1]");
});

test("a list has at most 1,000 entries", async () => {
  const list = (length: number) => Array.from({ length }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
  const source = await createSource({ access: { ipAllowlist: list(1000) } });
  expect((await from(source, "10.0.3.231")).status).toBe(200);
  expectError(await from(source, "10.0.3.232"), 403, "unauthorized");
  expectError(await configure(source, { access: { ipAllowlist: list(1001) } }), 400, "invalid_request", { field: "access.ipAllowlist" });
});

test("the settings come back in their shortest form", async () => {
  const source = await createSource();
  const { body } = await configure(source, { access: { ipAllowlist: ["192.0.2.77/24", "192.0.2.1/32", "::ffff:198.51.100.0/120", "2001:DB8::1/48"] } });
  expect(body.settings.access.ipAllowlist).toEqual(["192.0.2.0/24", "192.0.2.1", "198.51.100.0/24", "2001:db8::/48"]);
});

test("the key comes before the address: without one, nothing is told of the list", async () => {
  const source = await createSource({ access: { ipAllowlist: ["192.0.2.1"] } });
  const answer = await call("POST", `${API}/pools/${source.name}/lock/acquire`, { headers: { "CF-Connecting-IP": "198.51.100.1" } });
  expectError(answer, 401, "unauthorized");
});
