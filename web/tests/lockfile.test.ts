// @vitest-environment node
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('package-lock.json names no registry, so that it installs from any', () => {
  const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));
  const named = Object.entries(lock.packages as Record<string, { resolved?: string }>)
    .filter(([, one]) => one.resolved && !one.resolved.startsWith('https://registry.npmjs.org/'))
    .map(([name]) => name);
  expect(named).toEqual([]);
});

test('every dependency is pinned to one version', () => {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const versions = Object.values({ ...manifest.dependencies, ...manifest.devDependencies } as Record<
    string,
    string
  >);
  expect(versions.filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
});
