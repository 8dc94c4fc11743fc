import { useEffect, useState } from 'react';

/** A layer over the page that a shortcut opens. */
export type Overlay = 'search' | 'help';

const offKey = 'portolan-single-keys-off';

/** Whether keys without a modifier are shortcuts. A person can turn them off (WCAG 2.1.4). */
export function singleKeys(): boolean {
  try {
    return window.localStorage.getItem(offKey) === null;
  } catch {
    return true;
  }
}

export function setSingleKeys(on: boolean) {
  try {
    if (on) window.localStorage.removeItem(offKey);
    else window.localStorage.setItem(offKey, '1');
  } catch {
    // Storage may be switched off; then the keys stay on.
  }
}

/** The overlay that a key event opens: Ctrl-K or ⌘K anywhere, `/` and `?` outside of fields. */
export function overlayOf(event: KeyboardEvent): Overlay | undefined {
  if (event.defaultPrevented || event.isComposing || event.altKey) return undefined;
  if (event.ctrlKey || event.metaKey) {
    return event.key.toLowerCase() === 'k' && !event.shiftKey ? 'search' : undefined;
  }
  const field = event.target instanceof Element && event.target.closest('input, textarea, select');
  if (field || !singleKeys()) return undefined;
  return event.key === '/' ? 'search' : event.key === '?' ? 'help' : undefined;
}

/** The overlay that shortcuts opened, if any. An open dialog keeps its keys. */
export function useOverlay() {
  const [overlay, setOverlay] = useState<Overlay>();
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const next = overlayOf(event);
      if (!next || document.querySelector('[role="dialog"]')) return;
      event.preventDefault();
      setOverlay(next);
    };
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, []);
  return [overlay, setOverlay] as const;
}
