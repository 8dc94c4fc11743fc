// The file routes of src/routes, as Vite, the tests and `npm run generate` read them.
import { fileURLToPath } from 'node:url';
import { Generator, getConfig } from '@tanstack/router-generator';

const path = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
export const routesPath = path('src/routes.gen.ts');
export const routes = {
  target: 'react',
  autoCodeSplitting: true,
  routesDirectory: path('src/routes'),
  generatedRouteTree: routesPath,
  quoteStyle: 'single',
  semicolons: true,
};

/** Brings routes.gen.ts up to date with the files of src/routes. */
export async function generateRoutes() {
  const root = path('.');
  await new Generator({ config: getConfig(routes, root), root }).run();
}
