// The API's types, and the table of roles, as TypeScript source, from the document that the server emits.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';

const root = new URL('..', import.meta.url);
export const clientPath = fileURLToPath(new URL('src/api/client.gen.ts', root));

export async function clientSource() {
  const document = JSON.parse(readFileSync(new URL('openapi.json', root), 'utf8'));
  const ast = await openapiTS(document, { alphabetize: true, emptyObjectsUnknown: true });
  const roles = `/** For each action, the roles that may do it. */
export const rolesOf = ${JSON.stringify(document['x-roles'], null, 2)} as const;
`;
  return `// Generated from openapi.json by \`npm run generate\`. Do not edit.\n\n${astToString(ast)}\n${roles}`;
}
