// Writes what is generated: the API's types from openapi.json, the tree of routes from src/routes, and
// the CSS variables from the theme.
// `npm test` fails when a file differs from what this script would write.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { clientPath, clientSource } from './client.mjs';
import { generateRoutes } from './routes.mjs';
import { themePath, themeSource } from './theme.mjs';

writeFileSync(clientPath, await clientSource());
await generateRoutes();
const { module } = await runnerImport(fileURLToPath(new URL('../src/theme.ts', import.meta.url)), {
  configFile: false,
  logLevel: 'error',
});
writeFileSync(themePath, themeSource(module));
