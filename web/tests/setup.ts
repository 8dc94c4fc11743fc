import { cleanup } from '@testing-library/react';
import { afterEach, vi } from 'vitest';

// jsdom loads no fonts. A text field that grows waits for them.
if (typeof document !== 'undefined') {
  Object.defineProperty(document, 'fonts', { value: new EventTarget(), configurable: true });
}

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});
