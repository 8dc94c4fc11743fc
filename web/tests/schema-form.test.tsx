import { MantineProvider } from '@mantine/core';
import { render, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { expect, test } from 'vitest';
import type { ArgumentFault } from '../src/api/tools';
import { SchemaForm } from '../src/components/schema-form';
import type { Schema } from '../src/json-schema';

let current: Record<string, unknown> = {};

function Form({ schema, faults = [] }: { schema: Schema; faults?: ArgumentFault[] }) {
  const [value, setValue] = useState<Record<string, unknown>>({});
  current = value;
  return (
    <MantineProvider withCssVariables={false} withGlobalClasses={false} env="test">
      <SchemaForm schema={schema} value={value} onChange={setValue} faults={faults} />
    </MantineProvider>
  );
}

test('texts, numbers and lists become JSON of their types, and an emptied optional field goes away', async () => {
  const user = userEvent.setup();
  render(
    <Form
      schema={{
        type: 'object',
        required: ['port'],
        properties: {
          port: { type: 'string' },
          note: { type: 'string' },
          ship: { type: 'integer' },
          tags: { type: 'array', items: { type: 'string' } },
        },
      }}
    />,
  );
  await user.type(screen.getByRole('textbox', { name: /port/ }), 'DKCPH');
  await user.type(screen.getByRole('textbox', { name: /ship/ }), '42');
  await user.type(screen.getByRole('textbox', { name: /note/ }), 'x');
  await user.clear(screen.getByRole('textbox', { name: /note/ }));
  await user.click(screen.getByRole('button', { name: /Add an item/ }));
  await user.type(screen.getByRole('textbox', { name: /tags 1/ }), 'bulk');
  expect(current).toEqual({ port: 'DKCPH', ship: 42, tags: ['bulk'] });
});

test('what no field can draw is taken as JSON, and text that is no JSON changes nothing', async () => {
  const user = userEvent.setup();
  render(
    <Form
      schema={{
        type: 'object',
        properties: { anything: { oneOf: [{ type: 'string' }, { type: 'object' }] } },
      }}
    />,
  );
  const field = screen.getByRole('textbox', { name: /anything/ });
  await user.click(field);
  await user.paste('{"a": [1, 2]}');
  expect(current).toEqual({ anything: { a: [1, 2] } });
  await user.clear(field);
  await user.paste('{"a":');
  expect(current).toEqual({});
  expect(field.getAttribute('aria-invalid')).toBe('true');
});

test.each(['/contact/name', '$.contact.name', 'contact.name'])(
  'a fault at %s stands at its field',
  (path) => {
    render(
      <Form
        schema={{
          type: 'object',
          required: ['contact'],
          properties: { contact: { type: 'object', properties: { name: { type: 'string' } } } },
        }}
        faults={[{ path, message: 'is required' }]}
      />,
    );
    expect(screen.getByRole('textbox', { name: /name/ }).getAttribute('aria-invalid')).toBe('true');
    expect(screen.getByText('Required.')).toBeTruthy();
  },
);
