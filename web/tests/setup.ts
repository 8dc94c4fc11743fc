import { cleanup, configure } from '@testing-library/react';
import { afterEach, vi } from 'vitest';

// jsdom loads no fonts. A text field that grows waits for them.
if (typeof document !== 'undefined') {
  Object.defineProperty(document, 'fonts', { value: new EventTarget(), configurable: true });
}

// Compilers may work beside the tests: a wait ends when its state comes, and this is its bound.
configure({ asyncUtilTimeout: 10_000 });

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});
