import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, type Received, serve } from './server';

vi.setConfig({ testTimeout: 30_000 });
const patient = { timeout: 20_000 };
const path = '/api/v1/workspaces/harbour';

const tool = (id: string, name: string): Schemas['ToolSummary'] => ({
  id,
  source_id: 'src_1',
  source_name: 'Harbour',
  name,
  title: name,
  description: '',
  method: 'GET',
  path: `/${name}`,
  enabled: true,
  state: 'active',
  annotations: {
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  },
  used_by_servers: [],
  customised: false,
});

test('the choice of a new server shows its tokens, and warnings beside what they concern', async () => {
  const checks: Schemas['ToolBudgetRequest'][] = [];
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}/tools`]: { body: { items: [tool('tol_1', 'list_berths'), tool('tol_2', 'berths')] } },
    [`GET ${path}/prompts`]: { body: { items: [] } },
    [`POST ${path}/servers/check`]: (request: Received) => {
      const asked = request.body as Schemas['ToolBudgetRequest'];
      checks.push(asked);
      const body: Schemas['ToolBudget'] = {
        tokens: 1500 * asked.tools.length,
        tools: asked.tools.map(({ tool_id }) => ({
          tool_id,
          tokens: 1500,
          notes: tool_id === 'tol_2' ? ['The description says too little.'] : [],
        })),
        warnings: [{ client: 'Cursor', message: 'Give shorter names.' }],
      };
      return { body };
    },
  });
  const user = userEvent.setup();
  open('/w/harbour/servers/new');
  await user.click(await screen.findByRole('checkbox', { name: 'list_berths' }, patient));
  await screen.findByText('1,500', undefined, patient);
  screen.getByText('1,500 tokens');
  screen.getByText(/Give shorter names/);
  screen.getByRole('link', { name: /^Token budget/ });
  expect(screen.queryByText('The description says too little.')).toBeNull();
  await user.click(screen.getByRole('checkbox', { name: 'berths' }));
  await screen.findByText('3,000', undefined, patient);
  screen.getByText('The description says too little.');
  expect(checks.at(-1)?.tools).toEqual([
    { tool_id: 'tol_1', published_name: 'list_berths' },
    { tool_id: 'tol_2', published_name: 'berths' },
  ]);
  await user.click(screen.getByRole('button', { name: 'None' }));
  await waitFor(() => expect(screen.queryByText(/Give shorter names/)).toBeNull());
});
