import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import { docs } from './scripts/docs.mjs';

export default defineConfig({
  plugins: [docs(), react()],
  test: {
    environment: 'happy-dom',
    environmentOptions: { happyDOM: { url: 'http://console.test/' } },
    testTimeout: 20_000,
    include: ['tests/**/*.test.{ts,tsx}'],
    setupFiles: ['tests/setup.ts'],
    css: false,
  },
});
