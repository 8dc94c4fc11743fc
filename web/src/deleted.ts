import { useSyncExternalStore } from 'react';

/** What can be restored after its deletion. */
export type DeletedKind = 'source' | 'server' | 'prompt' | 'resource';

/** Something that was deleted in this browser; its list offers it back until `until` (ISO 8601). */
export interface DeletedThing {
  ws: string;
  kind: DeletedKind;
  id: string;
  name: string;
  until: string;
}

const key = 'portolan-deleted';
const listeners = new Set<() => void>();
let cached: { raw: string | null; things: DeletedThing[] } = { raw: null, things: [] };

/** Kept in the browser, so that a reload or another page does not lose the way back. */
function stored(): DeletedThing[] {
  let raw: string | null = null;
  try {
    raw = window.localStorage.getItem(key);
  } catch {
    // Storage may be switched off; then nothing outlives the page.
    return cached.things;
  }
  if (raw !== cached.raw) {
    let things: DeletedThing[] = [];
    try {
      const parsed: unknown = JSON.parse(raw ?? '[]');
      if (Array.isArray(parsed)) things = parsed as DeletedThing[];
    } catch {
      // Written by something else: as if there were nothing.
    }
    cached = { raw, things };
  }
  return cached.things;
}

function write(things: DeletedThing[]) {
  const raw = JSON.stringify(things);
  try {
    window.localStorage.setItem(key, raw);
    cached = { raw, things };
  } catch {
    cached = { raw: null, things };
  }
  for (const listener of listeners) listener();
}

const alive = (thing: DeletedThing) => Date.parse(thing.until) > Date.now();

/** How long a list offers it back; after that it is in the trash. */
const offered = 10 * 60_000;

export function rememberDeleted(thing: DeletedThing) {
  const until = new Date(Math.min(Date.parse(thing.until), Date.now() + offered)).toISOString();
  write([...stored().filter((one) => alive(one) && one.id !== thing.id), { ...thing, until }]);
}

export function forgetDeleted(id: string) {
  write(stored().filter((one) => one.id !== id));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('storage', listener);
  // What can no longer be restored is not offered any longer.
  const timer = window.setInterval(() => {
    if (stored().some((one) => !alive(one))) write(stored().filter(alive));
  }, 10_000);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', listener);
    window.clearInterval(timer);
  };
}

/** What of this kind was deleted in this workspace and can be restored now. */
export function useDeleted(ws: string, kind: DeletedKind): DeletedThing[] {
  const things = useSyncExternalStore(subscribe, stored);
  return things.filter((one) => one.ws === ws && one.kind === kind && alive(one));
}
