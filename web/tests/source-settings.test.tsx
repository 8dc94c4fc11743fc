import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import type { Source } from '../src/api/sources';
import { SourceSettingsForm } from '../src/components/source-settings';
import { alone } from './page';

const source: Source = {
  id: 'src_1',
  name: 'Pets',
  kind: 'openapi',
  base_url: 'https://pets.example.org',
  settings: { timeout_ms: 30000, max_response_bytes: 1048576, follow_redirects: 'none', tasks: false },
  tool_count: 2,
  enabled_tool_count: 1,
  credential: null,
  security: [],
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
};

function show(readOnly: boolean) {
  const onSubmit = vi.fn();
  alone(
    <SourceSettingsForm
      source={source}
      pending={false}
      error={null}
      readOnly={readOnly}
      onSubmit={onSubmit}
    />,
  );
  return onSubmit;
}

test('long calls become tasks by a switch that the keyboard reaches, and nothing else changes with it', async () => {
  const user = userEvent.setup();
  const onSubmit = show(false);
  const tasks = await screen.findByRole<HTMLInputElement>('switch', { name: /^Run long calls as MCP tasks/ });
  expect(tasks.checked).toBe(false);
  tasks.focus();
  await user.keyboard(' ');
  expect(tasks.checked).toBe(true);
  await user.click(screen.getByRole('button', { name: 'Save settings' }));
  expect(onSubmit).toHaveBeenCalledWith({
    name: 'Pets',
    base_url: 'https://pets.example.org',
    settings: { timeout_ms: 30000, max_response_bytes: 1048576, follow_redirects: 'none', tasks: true },
  });
});

test('who may not edit sees the switch and cannot move it', async () => {
  show(true);
  const tasks = await screen.findByRole('switch', { name: /^Run long calls as MCP tasks/ });
  expect(tasks.closest('fieldset')?.disabled).toBe(true);
  expect(screen.queryByRole('button', { name: 'Save settings' })).toBeNull();
});
