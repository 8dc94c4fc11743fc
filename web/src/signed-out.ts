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

/** The sign-in page, which leads back to where the console is. The server takes no address but one of the console's. */
export function signInPath(): string {
  const { pathname, search } = window.location;
  return `/login?${new URLSearchParams({ from: pathname + search })}`;
}

/**
 * Handles an API answer that says the session is missing or has ended.
 * Before the first answer no input can be lost, and the browser goes to the sign-in page.
 * Afterwards the page stays, with the typed input, and a dialog leads there.
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
