// @vitest-environment node
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { clientPath, clientSource } from '../scripts/client.mjs';
import { generateRoutes, routesPath } from '../scripts/routes.mjs';
import { themePath, themeSource } from '../scripts/theme.mjs';
import * as theme from '../src/theme';

test('client.gen.ts is what openapi.json generates', async () => {
  expect(readFileSync(clientPath, 'utf8') === (await clientSource()), 'run `npm run generate`').toBe(true);
}, 30_000);

test('theme.gen.css is what theme.ts generates', () => {
  expect(readFileSync(themePath, 'utf8') === themeSource(theme), 'run `npm run generate`').toBe(true);
});

test('routes.gen.ts is what the files of src/routes generate', async () => {
  const kept = readFileSync(routesPath, 'utf8');
  await generateRoutes();
  expect(readFileSync(routesPath, 'utf8') === kept, 'commit the new src/routes.gen.ts').toBe(true);
});
