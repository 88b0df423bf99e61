// Keys made in the tests, tokens signed with them, and the key sets of the server in key-server.mjs.

import { expect, inject } from "vitest";
import { acquire, createSource, expectError, mintKey, type Answer, type Source } from "./support";

declare module "vitest" {
  export interface ProvidedContext {
    keyServer: string;
  }
}

export type Algorithm = "RS256" | "ES256" | "EdDSA";

/** A key pair: `jwk` is its public half, as it stands in a set. */
export interface Signer {
  alg: Algorithm;
  kid: string;
  jwk: Record<string, unknown>;
  sign(message: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer>;
}

const HOW = {
  RS256: { name: "RSASSA-PKCS1-v1_5", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" },
  ES256: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
  EdDSA: { name: "Ed25519" },
};

export async function makeSigner(alg: Algorithm, kid = `${alg}-key`): Promise<Signer> {
  const how = HOW[alg];
  const { privateKey, publicKey } = (await crypto.subtle.generateKey(how, true, ["sign", "verify"])) as CryptoKeyPair;
  const { kty, crv, n, e, x, y } = (await crypto.subtle.exportKey("jwk", publicKey)) as JsonWebKey;
  const jwk = JSON.parse(JSON.stringify({ kty, crv, n, e, x, y, kid, alg, use: "sig" }));
  return { alg, kid, jwk, sign: (message) => crypto.subtle.sign(how, privateKey, message) };
}

export const base64url = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

export const encode = (json: unknown) => base64url(new TextEncoder().encode(JSON.stringify(json)));

/** A token with these claims; a header or claim that is undefined is left out. */
export async function token(signer: Signer, claims: object, header: object = {}): Promise<string> {
  const message = `${encode({ alg: signer.alg, kid: signer.kid, typ: "JWT", ...header })}.${encode(claims)}`;
  const signature = await signer.sign(new TextEncoder().encode(message) as Uint8Array<ArrayBuffer>);
  return `${message}.${base64url(new Uint8Array(signature))}`;
}

export const ISSUER = "https://idp.example/";
export const AUDIENCE = "locks";

export const seconds = (after = 0) => Math.floor(Date.now() / 1000) + after;

/** Claims as they should be, with these changes. */
export const claims = (more: object = {}) => ({ iss: ISSUER, aud: AUDIENCE, exp: seconds(300), ...more });

/** What the key server says for a set; see key-server.mjs. */
export interface Answering {
  status?: number;
  headers?: Record<string, string>;
  body?: string;
  fault?: "down" | "hang" | "stall" | "endless";
  delayMs?: number;
}

export class PublishedSet {
  constructor(readonly name = crypto.randomUUID()) {}

  get url(): string {
    return `${inject("keyServer")}/sets/${this.name}`;
  }

  async answers(answering: Answering): Promise<this> {
    const response = await fetch(this.url, { method: "PUT", body: JSON.stringify({ status: 200, ...answering }) });
    await response.text();
    return this;
  }

  holds(signers: Signer[], headers: Record<string, string> = {}): Promise<this> {
    return this.answers({ headers, body: JSON.stringify({ keys: signers.map(({ jwk }) => jwk) }) });
  }

  async hits(): Promise<number> {
    const response = await fetch(`${inject("keyServer")}/hits/${this.name}`);
    return Number(await response.text());
  }
}

export const publish = (...signers: Signer[]) => new PublishedSet().holds(signers);

/** A source with this policy, and a key that outlives what a test does to the clock. */
export async function sourceWith(access: object): Promise<Source> {
  const source = await createSource({ concurrency: { limit: 100 }, access });
  return { ...source, ...(await mintKey(source, { ttlMs: 30 * 86_400_000 })) };
}

/** A source that asks for a JWT whose keys are in this set. */
export const guarded = (set: PublishedSet, more: object = {}): Promise<Source> =>
  sourceWith({ jwt: { issuer: ISSUER, audience: AUDIENCE, jwksUrl: set.url, ...more } });

export const HEADER = "X-Swarmvia-Jwt";

export const acquireWith = (source: Source, shown?: string, header = HEADER): Promise<Answer> =>
  acquire(source, { headers: shown === undefined ? {} : { [header]: shown } });

export async function expectIn(source: Source, shown: string, header = HEADER): Promise<void> {
  const { status, body } = await acquireWith(source, shown, header);
  expect({ status, error: body.error }).toEqual({ status: 200, error: undefined });
}

export async function expectOut(source: Source, shown?: string, header = HEADER): Promise<void> {
  const answer = await acquireWith(source, shown, header);
  expectError(answer, 401, "unauthorized");
  expect(answer.headers.get("www-authenticate")).toBeTruthy();
  // Nothing of it comes back.
  if (shown) expect(JSON.stringify(answer.body)).not.toContain(shown);
}
