import { TextInput } from '@mantine/core';
import { QueryClient, QueryClientProvider, useMutation } from '@tanstack/react-query';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import { ApiError } from '../src/api/http';
import { useFields } from '../src/components/form';
import { Submit } from '../src/components/submit';
import { blank } from '../src/rules';
import { alone } from './page';

/** A form of two fields. `refuse` is the answer of the server to each attempt. */
function Form({ sent, refuse }: { sent: unknown[]; refuse?: ApiError }) {
  const save = useMutation({
    mutationFn: async (values: unknown) => {
      sent.push(values);
      if (refuse) throw refuse;
    },
  });
  const form = useFields({
    initialValues: { name: '', host: 'a.example' },
    validate: ({ name, host }) => ({
      name: blank(name, 'Enter a name.'),
      host: blank(host, 'Enter a host.'),
    }),
    error: save.error,
    place: ({ field }) => (field === 'server.host' ? 'host' : field),
  });
  return (
    <form ref={form.ref} onSubmit={form.onSubmit((values) => save.mutate(values))} noValidate>
      <TextInput label="Name" {...form.getInputProps('name')} />
      <TextInput label="Host" {...form.getInputProps('host')} />
      <Submit error={form.refusal} title="It was not saved" fault={form.fault}>
        <button type="submit">Save</button>
        <button type="button" onClick={() => form.restart({ host: form.values.host })}>
          Restart
        </button>
        <span>{form.isChanged() ? 'changed' : 'as before'}</span>
      </Submit>
    </form>
  );
}

function show(refuse?: ApiError) {
  const sent: unknown[] = [];
  alone(
    <QueryClientProvider client={new QueryClient()}>
      <Form sent={sent} {...(refuse && { refuse })} />
    </QueryClientProvider>,
  );
  return sent;
}

const field = (name: string) => screen.findByLabelText<HTMLInputElement>(name);
const isInvalid = (input: HTMLElement) => input.getAttribute('aria-invalid') === 'true';

test('faults are shown at the first attempt, the first has the focus, and they follow the input', async () => {
  const user = userEvent.setup();
  const sent = show();
  const name = await field('Name');
  const host = await field('Host');
  await user.clear(host);
  expect(isInvalid(host)).toBe(false);
  await user.click(screen.getByRole('button', { name: 'Save' }));
  expect(screen.getByText('Enter a name.')).toBeTruthy();
  expect(screen.getByText('Fix the highlighted fields.')).toBeTruthy();
  expect(document.activeElement).toBe(name);
  await user.type(name, 'A');
  expect(isInvalid(name)).toBe(false);
  expect(isInvalid(host)).toBe(true);
  await user.clear(name);
  expect(isInvalid(name)).toBe(true);
  expect(sent).toEqual([]);
});

test('Enter sends the form', async () => {
  const user = userEvent.setup();
  const sent = show();
  await user.type(await field('Name'), 'Ada{Enter}');
  expect(sent).toEqual([{ name: 'Ada', host: 'a.example' }]);
});

test('a refusal stands at its field until that is edited, and the input stays', async () => {
  const user = userEvent.setup();
  const sent = show(new ApiError(422, 'invalid', 'This host is not reachable.', 'server.host'));
  const name = await field('Name');
  const host = await field('Host');
  await user.type(name, 'Ada{Enter}');
  expect(await screen.findByText('This host is not reachable.')).toBeTruthy();
  expect(document.activeElement).toBe(host);
  expect(screen.queryByText('Fix the highlighted fields.')).toBeNull();
  expect(screen.queryByText('It was not saved')).toBeNull();
  await user.type(name, ' L');
  expect(isInvalid(host)).toBe(true);
  await user.type(host, '.org');
  expect(isInvalid(host)).toBe(false);
  expect(name.value).toBe('Ada L');
  // The same refusal of another attempt is shown again.
  await user.click(screen.getByRole('button', { name: 'Save' }));
  expect(await screen.findByText('This host is not reachable.')).toBeTruthy();
  expect(sent).toHaveLength(2);
});

test('a refusal without a field stands beside the button', async () => {
  const user = userEvent.setup();
  show(new ApiError(503, 'busy', 'Portolan is busy.'));
  await user.type(await field('Name'), 'Ada{Enter}');
  expect(await screen.findByText('It was not saved')).toBeTruthy();
  expect(screen.getByText('Portolan is busy.')).toBeTruthy();
});

test('a form begins anew without faults, and keeps what it is told to keep', async () => {
  const user = userEvent.setup();
  show();
  const name = await field('Name');
  const host = await field('Host');
  await user.type(host, '.org');
  expect(screen.getByText('changed')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Save' }));
  expect(isInvalid(name)).toBe(true);
  await user.click(screen.getByRole('button', { name: 'Restart' }));
  expect(isInvalid(name)).toBe(false);
  expect(host.value).toBe('a.example.org');
  await user.clear(host);
  await user.type(host, 'a.example');
  expect(screen.getByText('as before')).toBeTruthy();
});
