import { useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
let answered = false;
let ended = false;

function set(next: boolean) {
  if (ended === next) return;
  ended = next;
  for (const listener of listeners) listener();
}

/** The API answered: there is a session. */
export function sessionAnswered() {
  answered = true;
  set(false);
}

/** Signing in leads back to the page that asked for it. */
export const signInPath = () =>
  `/login?return_to=${encodeURIComponent(window.location.pathname + window.location.search)}`;

/**
 * The API says that nobody is signed in. Before its first answer nothing can be lost, and the browser goes to the sign-in
 * page; after it the page stays, with what was typed, and a dialog leads there.
 */
export function sessionEnded() {
  if (answered) set(true);
  else window.location.assign(signInPath());
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useSessionEnded = () => useSyncExternalStore(subscribe, () => ended);
