import { readFileSync } from 'node:fs';
import { tanstackRouter } from '@tanstack/router-plugin/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { docs } from './scripts/docs.mjs';
import { routes } from './scripts/routes.mjs';

// In development the API, the sign-in pages and the mailbox come from a running Portolan.
const api = process.env.PORTOLAN_API ?? 'http://localhost:8080';

/** Only the styles of the components that are used are imported (src/mantine.css): none of them may be forgotten. */
function everyComponentHasItsStyles(): Plugin {
  return {
    name: 'every-component-has-its-styles',
    apply: 'build',
    generateBundle(_, bundle) {
      const classes = (text: string) => text.match(/\bm_[0-9a-f]{6,8}\b/g) ?? [];
      const all = new Set(classes(readFileSync('node_modules/@mantine/core/styles.css', 'utf8')));
      const files = Object.values(bundle);
      const styled = new Set(
        files.flatMap((one) =>
          one.type === 'asset' && one.fileName.endsWith('.css') ? classes(String(one.source)) : [],
        ),
      );
      const bare = files
        .flatMap((one) => (one.type === 'chunk' ? classes(one.code) : []))
        .filter((name) => all.has(name) && !styled.has(name));
      if (bare.length > 0) {
        this.error(`src/mantine.css lacks the styles of ${[...new Set(bare)].join(', ')}`);
      }
    },
  };
}

export default defineConfig({
  plugins: [tanstackRouter(routes), docs(), react(), everyComponentHasItsStyles()],
  build: {
    target: 'es2023',
    // The console's CSP admits no data: fonts and no inline script, so nothing may be inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
    rollupOptions: {
      output: {
        // Modules of nearly every page are one chunk: fewer answers for the first page of a visit.
        codeSplitting: { groups: [{ name: 'shared', minShareCount: 33 }] },
        // The server-rendered pages load the same fonts (crates/site/assets/fonts.css), so these have names that stay.
        assetFileNames: ({ names }) =>
          names.some((name) => name.endsWith('.woff2'))
            ? 'assets/[name][extname]'
            : 'assets/[name]-[hash][extname]',
      },
    },
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/login', '/logout', '/signup', '/verify', '/oauth', '/dev'].map((path) => [path, api]),
    ),
  },
});
