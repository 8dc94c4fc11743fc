// The API's types as TypeScript source, from the document that the server emits.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';

const root = new URL('..', import.meta.url);
export const clientPath = fileURLToPath(new URL('src/api/client.gen.ts', root));

export async function clientSource() {
  const document = JSON.parse(readFileSync(new URL('openapi.json', root), 'utf8'));
  const ast = await openapiTS(document, { alphabetize: true, emptyObjectsUnknown: true });
  return `// Generated from openapi.json by \`npm run generate\`. Do not edit.\n\n${astToString(ast)}`;
}
