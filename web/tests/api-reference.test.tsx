import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import openapi from '../openapi.json';
import { type ApiDocument, matching, routesOf } from '../src/api/reference';
import { open } from './page';
import { serve } from './server';

const document = openapi as unknown as ApiDocument;
const patient = { timeout: 20_000 };

test('the reference has every route of the document, and finds them by words and scope', () => {
  const routes = routesOf(document);
  const count = Object.values(document.paths).reduce((sum, item) => sum + Object.keys(item).length, 0);
  expect(routes.length).toBe(count);
  expect(matching(routes, '').length).toBe(count);
  const writes = matching(routes, 'post registry:write');
  expect(writes.length).toBeGreaterThan(5);
  expect(writes.every((route) => route.method === 'POST')).toBe(true);
  expect(matching(routes, 'no such words')).toEqual([]);
  const closed = routes.find((route) => route.id === 'create_workspace_token');
  expect(closed?.takesTokens).toBe(false);
});

test('a route shows its scope, its parameters and its body', async () => {
  serve({ 'GET /api/v1/openapi.json': { body: openapi } });
  open('/docs/api#create_server');
  const user = userEvent.setup();
  const search = await screen.findByLabelText('Find a route', {}, patient);
  await user.type(search, 'create_server');
  const route = (await screen.findByText('/api/v1/workspaces/{ws}/servers', {}, patient)).closest('details');
  if (!route) throw new Error('no route');
  expect(await within(route).findByText('registry:write')).toBeTruthy();
  expect(within(route).getByText('Idempotency-Key')).toBeTruthy();
  await user.clear(search);
  await user.type(search, 'no such words');
  expect(await screen.findByText('No route has these words')).toBeTruthy();
}, 60_000);
