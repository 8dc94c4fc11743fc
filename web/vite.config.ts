import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// In development the API, the sign-in pages and the mailbox come from a running Portolan.
const api = process.env.PORTOLAN_API ?? 'http://localhost:8080';

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2023',
    // The console's CSP admits no data: fonts and no inline script, so nothing may be inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/login', '/logout', '/signup', '/verify', '/oauth', '/dev'].map((path) => [path, api]),
    ),
  },
});
