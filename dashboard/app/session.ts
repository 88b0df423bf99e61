// The admin token of this tab. It is kept in session storage, which ends with the tab; it never goes
// into a URL, a cookie or local storage.

import { useEffect, useState } from "preact/hooks";

const PLACE = "swarmvia-admin-token";

interface Session {
  token: string | null;
  /** Why it ended, if it did not by choice. */
  refused: boolean;
}

let session: Session = { token: stored(), refused: false };
const listeners = new Set<() => void>();

export const currentToken = () => session.token;

export function signIn(token: string) {
  change({ token, refused: false });
}

export function signOut({ refused = false } = {}) {
  if (session.token !== null) change({ token: null, refused });
}

export function useSession(): Session {
  const [, redraw] = useState({});
  useEffect(() => {
    const listener = () => redraw({});
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return session;
}

function change(next: Session) {
  session = next;
  try {
    if (next.token === null) sessionStorage.removeItem(PLACE);
    else sessionStorage.setItem(PLACE, next.token);
  } catch {
    // Storage is switched off: the token lives as long as the page.
  }
  for (const listener of listeners) listener();
}

function stored(): string | null {
  try {
    return sessionStorage.getItem(PLACE);
  } catch {
    return null;
  }
}
