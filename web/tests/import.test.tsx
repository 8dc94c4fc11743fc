import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

const operation = (
  key: string,
  more: Partial<Schemas['OperationPreview']> = {},
): Schemas['OperationPreview'] => ({
  key,
  method: key.split(' ')[0] ?? '',
  path: key.split(' ')[1] ?? '',
  tool_name: key.replaceAll(/\W+/g, '_'),
  title: key,
  description: '',
  tags: [],
  deprecated: false,
  status: 'tool',
  warnings: [],
  read_only: key.startsWith('GET'),
  destructive: key.startsWith('DELETE'),
  ...more,
});

const preview: Schemas['ImportPreview'] = {
  title: 'Orders',
  version: '1',
  spec_version: '3.1.0',
  servers: [{ url: 'https://api.example.org' }],
  base_url: 'https://api.example.org',
  security: [{ kind: 'api_key', name: 'X-Key', location: 'header' }],
  operations: [
    operation('GET /orders'),
    operation('DELETE /orders/{id}'),
    operation('GET /stream', {
      status: 'left_out',
      tool_name: undefined,
      reason: 'The provider responded with an event stream.',
    }),
  ],
  problems: [],
  digest: 'd',
};

const source: Schemas['Source'] = {
  id: 'src_1',
  name: 'Orders',
  kind: 'openapi',
  base_url: 'https://api.example.org',
  settings: { timeout_ms: 1, max_response_bytes: 1, follow_redirects: 'none' },
  tool_count: 2,
  enabled_tool_count: 1,
  credential: null,
  security: [],
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
};

test('a document that is refused shows where its faults are and keeps the text', async () => {
  const user = userEvent.setup();
  serve({
    'GET /api/v1/me': { body: me },
    'POST /api/v1/workspaces/harbour/imports/preview': refusal(422, {
      code: 'document_invalid',
      message: 'This is not an OpenAPI document.',
      details: {
        problems: [{ severity: 'error', message: 'Not a map.', line: 3, column: 7, pointer: '/paths' }],
      },
    }),
  });
  open('/w/harbour/sources/import');
  await user.click(await screen.findByRole('radio', { name: /Paste/ }));
  const field = screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'OpenAPI document' });
  await user.click(field);
  await user.paste('paths: 1');
  await user.click(screen.getByRole('button', { name: 'Preview tools' }));
  expect(await screen.findByText('line 3, column 7 · /paths')).toBeTruthy();
  expect(screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'OpenAPI document' }).value).toBe(
    'paths: 1',
  );
});

const credential = (state: Schemas['CredentialState']): Schemas['CredentialSummary'] => ({
  kind: 'api_key',
  hint: 'X-Key: ••••cret',
  updated_at: '2026-01-01T00:00:00Z',
  state,
});

test('REVIEW-UX-FRICTION-4: the key of the demo API is filled in, and its hint is shown once', async () => {
  const user = userEvent.setup();
  const demo_api: Schemas['DemoApi'] = {
    openapi_url: 'http://127.0.0.1:1/openapi.json',
    base_url: 'http://127.0.0.1:1',
    title: 'Harbour',
    api_key: 'demo-key',
    mcp_url: 'http://127.0.0.1:1/mcp',
  };
  const hint = { ...preview.security[0], description: 'The demo key is `demo-key`.' };
  serve({
    'GET /api/v1/me': { body: { ...me, demo_api } },
    'POST /api/v1/workspaces/harbour/imports/preview': { body: { ...preview, security: [hint] } },
  });
  open('/w/harbour/sources/import');
  await user.click(await screen.findByRole('button', { name: 'Preview tools' }));
  await user.click(await screen.findByRole('button', { name: 'Continue with 2 tools' }));
  expect((await screen.findByLabelText<HTMLInputElement>('Key')).value).toBe('demo-key');
  expect(screen.getAllByText('demo-key')).toHaveLength(1);
});

test('the chosen operations are enabled, the credential is set, and a failed credential does not create the source twice', async () => {
  const user = userEvent.setup();
  let tries = 0;
  const received = serve({
    'GET /api/v1/me': { body: me },
    'POST /api/v1/workspaces/harbour/imports/preview': { body: preview },
    'POST /api/v1/workspaces/harbour/sources': { status: 201, body: source },
    'PUT /api/v1/workspaces/harbour/sources/src_1/credential': () => {
      tries += 1;
      return tries === 1
        ? refusal(503, { code: 'busy', message: 'Try again.' })
        : { body: credential({ state: 'never_tried' }) };
    },
    'POST /api/v1/workspaces/harbour/sources/src_1/credential/test': () => ({
      body: {
        credential: credential(
          tries === 2
            ? { state: 'refused', status: 401, at: new Date().toISOString() }
            : { state: 'works', at: new Date().toISOString() },
        ),
      },
    }),
  });
  open('/w/harbour/sources/import');
  await user.type(
    await screen.findByRole('textbox', { name: 'URL of the document' }),
    'https://api.example.org/openapi.json',
  );
  await user.click(screen.getByRole('button', { name: 'Preview tools' }));
  await screen.findByRole('heading', { name: 'Operations' });
  expect(screen.getByRole('tab', { name: 'Left out 1' })).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Read-only' }));
  await user.click(screen.getByRole('button', { name: 'Continue with 1 tool' }));
  await user.type(await screen.findByLabelText('Key'), 'secret');
  await user.click(screen.getByRole('button', { name: 'Save and test' }));
  expect(await screen.findByText('Try again.')).toBeTruthy();
  // The key is refused: the step stays, says so beside the button, and takes another key.
  await user.click(screen.getByRole('button', { name: 'Save and test' }));
  expect(await screen.findByText(/^Refused 401 at /)).toBeTruthy();
  expect(screen.getByText(/save it again/)).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Continue' })).toBeTruthy();
  await user.type(screen.getByLabelText('Key'), ' right');
  await user.click(screen.getByRole('button', { name: 'Save and test' }));
  expect(await screen.findByRole('heading', { name: 'Orders was imported' })).toBeTruthy();
  const created = received.filter((one) => one.method === 'POST' && one.path.endsWith('/sources'));
  expect(created.map((one) => one.body)).toEqual([
    {
      kind: 'openapi',
      name: 'Orders',
      input: { kind: 'url', url: 'https://api.example.org/openapi.json' },
      base_url: 'https://api.example.org',
      operations: ['GET /orders'],
    },
  ]);
});
