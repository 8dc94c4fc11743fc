import {
  localStorageColorSchemeManager,
  type MantineColorScheme,
  type MantineColorSchemeManager,
} from '@mantine/core';

/** The cookie that the server-rendered pages read (`crates/site/src/pages/theme.rs`), and that the account page writes. */
const cookie = 'theme';
const year = 365 * 86_400;

function chosen(): MantineColorScheme | undefined {
  const found = new RegExp(`(?:^|; )${cookie}=(light|dark|auto)(?:;|$)`).exec(document.cookie);
  return found?.[1] as MantineColorScheme | undefined;
}

function write(scheme: MantineColorScheme) {
  const secure = window.location.protocol === 'https:' ? '; Secure' : '';
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is not in every browser that the console admits
  document.cookie = `${cookie}=${scheme}; Path=/; SameSite=Lax; Max-Age=${year}${secure}`;
}

/**
 * The choice in a cookie, so that sign-in, account and consent pages have it too; in the storage for tabs that are
 * open, and for who signed out.
 */
export function colorSchemeManager(): MantineColorSchemeManager {
  const storage = localStorageColorSchemeManager({ key: 'portolan-color-scheme' });
  return {
    ...storage,
    get(otherwise) {
      const named = chosen();
      if (named) return named;
      const stored = storage.get(otherwise);
      if (stored !== otherwise) write(stored);
      return stored;
    },
    set(scheme) {
      write(scheme);
      storage.set(scheme);
    },
    clear() {
      write('auto');
      storage.clear();
    },
  };
}
