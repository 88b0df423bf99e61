// Calls to the API of this host. An error of the API is a `Refusal`, with the API's own sentence; no
// answer at all is `Unreachable`. A refused admin token ends the session.

import { currentToken, signOut } from "./session";

const PATIENCE_MS = 15_000;

/** The API said no, and why. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The `error` word. */
    readonly word: string,
    /** Which field was refused, such as `lease.termMs`. */
    readonly field: string | undefined,
  ) {
    super(message);
  }
}

/** There was no answer, or none of the API's. */
export class Unreachable extends Error {}

export interface Answer {
  status: number;
  headers: Headers;
  body: any;
}

interface Sent {
  body?: unknown;
  headers?: Record<string, string>;
  patienceMs?: number;
}

/** One call as it is, whatever the answer. */
export async function exchange(method: string, path: string, { body, headers, patienceMs = PATIENCE_MS }: Sent = {}): Promise<Answer> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(patienceMs),
      cache: "no-store",
      credentials: "same-origin",
      redirect: "error",
    });
    return { status: answer.status, headers: answer.headers, body: await answer.json() };
  } catch {
    throw new Unreachable("The service can't be reached.");
  }
}

/** A call with the admin token. Resolves to the body of a good answer. */
export async function admin<T>(method: string, path: string, sent: Sent = {}): Promise<T> {
  const token = currentToken();
  const headers = { ...sent.headers, Authorization: `Bearer ${token}` };
  const { status, body } = await exchange(method, path, { ...sent, headers });
  if (status >= 200 && status < 300) return body as T;
  if (status === 401 && token === currentToken()) signOut({ refused: true });
  throw new Refusal(status, body.message ?? `The service answered ${status}.`, body.error ?? "", body.field);
}

/** One sentence for people about anything that was thrown. */
export function sentence(error: unknown): string {
  if (error instanceof Refusal || error instanceof Unreachable) return error.message;
  return "Something went wrong in this page; reload it.";
}

export const pool = (source: string, ...parts: string[]) =>
  ["/pools", source, ...parts.map(encodeURIComponent)].join("/");
