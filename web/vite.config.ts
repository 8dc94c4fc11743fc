import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// In development the API, the sign-in pages and the mailbox come from a running Portolan.
const api = process.env.PORTOLAN_API ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2023',
    // The console's CSP admits no data: fonts and no inline script, so nothing may be inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
    rollupOptions: {
      output: {
        // The server-rendered pages load the same fonts (services/auth/assets/fonts.css), so these have names that stay.
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
