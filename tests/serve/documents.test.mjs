// The commands of the documents, pasted as they stand, and pasted again: they work the second time too, lose no secret and
// leave no slot held.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { ADMIN_TOKEN, serve } from "./support.mjs";

const shells = ["bash", "zsh", "sh"].filter((shell) => spawnSync(shell, ["-c", ":"]).status === 0);
let server, demo;

before(async () => {
  server = await serve();
  demo = await server.createSource("demo", { concurrency: { limit: 3 } });
});
after(() => server.end());

/** The block of `page` that has `mark` in it. */
async function block(page, mark) {
  const blocks = (await readFile(page, "utf8")).matchAll(/^( *)```sh\n(.*?)^ *```$/gms);
  const found = [...blocks].map(([, indent, text]) => text.replaceAll(new RegExp(`^${indent}`, "gm"), "")).filter((text) => text.includes(mark));
  assert.equal(found.length, 1, `one block of ${page} has ${mark}`);
  return found[0];
}

/** Pastes it; resolves to all that it printed. */
function paste(shell, text, cwd, env = {}) {
  const base = `http://127.0.0.1:${server.port}`;
  const vars = { API: base, ADMIN_TOKEN, LOCK_API: `${base}/pools/demo/lock`, ACCESS_KEY: demo.key };
  return new Promise((resolve) => {
    // Through a pipe of the shell's, since /dev/stderr can't be opened where it is one of Node's.
    const child = spawn("sh", ["-c", '"$0" -c "$1" 2>&1 | cat', shell, text], { cwd, env: { ...process.env, ...vars, ...env } });
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => (out += chunk));
    child.on("close", () => resolve(out));
  });
}

const inFolder = async (body) => {
  const folder = await mkdtemp(join(tmpdir(), "swarmvia-documents-"));
  await body(folder);
  await rm(folder, { recursive: true });
};
const freeOf = async (name) => assert.equal((await server.state({ name })).inUse, 0, `nothing of ${name} is held`);
const times = (out, text) => out.split(text).length - 1;

for (const shell of shells) {
  test(`acquire, renew and release leave no slot held, ${shell}`, async () => {
    for (const [page, mark, grants] of [["README.md", "No-Queue: 1", 3], ["README.md", '"$LOCK_API/$SLOT/renew"', 1], ["docs/getting-started.md", "$SLOT/release", 1]]) {
      const text = (await block(page, mark)).replaceAll(/^(export|# →).*\n/gm, "");
      for (let pastes = 0; pastes < 2; pastes += 1) {
        const out = await paste(shell, text, ".");
        assert.equal(times(out, '"released":true'), grants, out);
        await freeOf("demo");
      }
    }
  });

  test(`a pair is minted once, refreshed any number of times, and kept, ${shell}`, () =>
    inFolder(async (folder) => {
      const kept = async () => JSON.parse(await readFile(join(folder, "key.json"), "utf8"));
      const tokens = new Set();
      const before = (await server.admin("GET", "/pools/team/keys")).body.keys?.length ?? 0;
      const pages = [["README.md", "refresh()"], ["docs/tokens.md", "mint()"], ["docs/tokens.md", "refresh()"]];
      for (const [page, mark] of [...pages, ...pages]) {
        await paste(shell, await block(page, mark), folder);
        tokens.add((await kept()).refreshToken);
        assert.equal((await stat(join(folder, "key.json"))).mode & 0o777, 0o600);
      }
      assert.equal(tokens.size, 4);
      const pair = await kept();
      const { keys } = (await server.admin("GET", "/pools/team/keys")).body;
      assert.equal(keys.length - before, 1);
      assert.equal(keys.find(({ keyId }) => keyId === pair.keyId).state, "live");
      // What isn't answered well leaves the file as it is.
      await paste(shell, await block("docs/tokens.md", "refresh()"), folder, { API: `${server.port}.invalid` });
      assert.deepEqual(await kept(), pair);
    }));

  test(`a call under a JWT gives its slot back, ${shell}`, () =>
    inFolder(async (folder) => {
      const { body: minted } = await server.admin("POST", "/pools/team/keys", {});
      for (let pastes = 0; pastes < 2; pastes += 1) {
        const out = await paste(shell, await block("README.md", "issuer.mjs"), folder, { TEAM_KEY: minted.accessKey });
        assert.equal(times(out, '"released":true'), 1, out);
        await freeOf("team");
      }
      await server.admin("PUT", "/pools/team", {});
    }));

  test(`the secrets of a deployment are made once, ${shell}`, () =>
    inFolder(async (folder) => {
      // What would go to Cloudflare is written down.
      for (const tool of ["npm", "npx"]) {
        await writeFile(join(folder, tool), `#!/bin/sh\n[ "$2" = secret ] && echo "$4 $(cat)" >> told\nexit 0\n`);
        await chmod(join(folder, tool), 0o755);
      }
      const env = { PATH: `${folder}${delimiter}${process.env.PATH}` };
      const served = (await block("README.md", "> secrets.env")).replace(/^npm run serve.*$/m, 'echo "serve $ADMIN_TOKEN $SIGNING_KEYS" >> told');
      for (const text of [await block("README.md", "secret put ADMIN_TOKEN"), served]) {
        for (let pastes = 0; pastes < 2; pastes += 1) await paste(shell, text, folder, env);
      }
      const told = (await readFile(join(folder, "told"), "utf8")).trim().split("\n");
      assert.equal(told.length, 6);
      assert.equal(new Set(told).size, 3, "the second time nothing changes");
      for (const file of ["secrets.env", "deploy.env"]) assert.equal((await stat(join(folder, file))).mode & 0o777, 0o600);
    }));

  test(`settings that couldn't be read aren't replaced, ${shell}`, () =>
    inFolder(async (folder) => {
      await server.admin("PUT", "/pools/demo", { concurrency: { limit: 3 } });
      const define = (await block("docs/operating.md", "op() {")).replace(/^export.*\n/m, "");
      const change = `${await block("docs/operating.md", "op GET demo -D headers.txt")}\n${await block("docs/operating.md", "op PUT demo")}`;
      const edit = { EDITOR: "true" };
      assert.match(await paste(shell, `${define}\n${change}`, folder, edit), /"effectiveLimit":3/);
      const unread = `${define}\n${change.replace("op GET demo", "op GET nosuch")}`;
      await paste(shell, unread, folder, edit);
      assert.equal((await server.state(demo)).effectiveLimit, 3);
    }));
}

test("no function of the documents takes the name of a shell's own variable", async () => {
  // zsh: `path` is PATH as a list, `status` can't be set.
  for (const page of ["README.md", "docs/operating.md", "docs/tokens.md", "docs/getting-started.md", "CONTRIBUTING.md"]) {
    assert.doesNotMatch(await readFile(page, "utf8"), /(^|[ ;{])(path|status|cdpath|fpath|argv|prompt)=\S/m, page);
  }
});
