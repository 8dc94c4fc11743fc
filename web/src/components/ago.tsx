import { useSyncExternalStore } from 'react';
import { formatAgo, formatDateTime } from '../time';

const tick = 10_000;
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

/** One clock for all times of a page. It stands still while no time is shown. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const one of listeners) one();
  }, tick);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** "3 minutes ago", which goes on while the page is open, with the exact time as its title. */
export function Ago({ at }: { at: string }) {
  const seen = useSyncExternalStore(subscribe, () => now);
  return (
    <time dateTime={at} title={formatDateTime(at)}>
      {/* A time that came after the last tick is not in the future. */}
      {formatAgo(at, Math.max(seen, Date.now()))}
    </time>
  );
}
