// A trial of a tool shows both messages as they were sent and received.
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { TryResultView } from '../src/components/try-result';
import { alone } from './page';

const patient = { timeout: 15_000 };

const trial: Schemas['Trial'] = {
  ok: true,
  is_error: false,
  status: 201,
  duration_ms: 84,
  request: {
    method: 'POST',
    url: 'https://api.example.org/bookings?key=••••',
    headers: [
      { name: 'authorization', value: 'Bearer ••••' },
      { name: 'content-type', value: 'application/json' },
    ],
    body: { text: '{"berth":"N3"}', bytes: 14 },
  },
  response: {
    status: 201,
    headers: [
      { name: 'location', value: '/bookings/7' },
      { name: 'set-cookie', value: '••••' },
    ],
    body: { bytes: 2048 },
  },
  content: [{ type: 'text', text: 'booked' }],
};

const lines = (name: string) =>
  [...screen.getByLabelText(name).querySelectorAll('dt')].map((term) => [
    term.textContent,
    term.nextElementSibling?.textContent,
  ]);

test('REVIEW-UX-BUG-20: try it shows method, URL, headers and body that were sent, and those of the answer', async () => {
  alone(<TryResultView result={trial} />);
  const user = userEvent.setup();
  await screen.findByText('https://api.example.org/bookings?key=••••', {}, patient);
  screen.getByText('POST');
  screen.getByText('booked');
  await user.click(screen.getByRole('tab', { name: 'Request' }));
  expect(lines('Headers of the request')).toEqual([
    ['authorization', 'Bearer ••••'],
    ['content-type', 'application/json'],
  ]);
  expect(screen.getByRole('region', { name: 'body of the request' }).textContent).toBe(
    '{\n  "berth": "N3"\n}',
  );
  screen.getByText('Body, 14 bytes');
  await user.click(screen.getByRole('tab', { name: 'Response' }));
  expect(lines('Headers of the response')).toEqual([
    ['location', '/bookings/7'],
    ['set-cookie', '••••'],
  ]);
  screen.getByText('Body, 2.0 KiB');
  screen.getByText('Not text, so it is not shown.');
});

test('an answer that did not arrive leaves the request to read, and a request without a body says so', async () => {
  const { response, ...sent } = trial;
  const request = { method: 'GET', url: 'https://api.example.org/', headers: [] };
  const text = 'The API did not answer.';
  alone(
    <TryResultView
      result={{ ...sent, ok: false, is_error: true, request, content: [{ type: 'text', text }] }}
    />,
  );
  const user = userEvent.setup();
  await screen.findByText(text, {}, patient);
  expect(screen.queryByRole('tab', { name: 'Response' })).toBeNull();
  await user.click(screen.getByRole('tab', { name: 'Request' }));
  screen.getByText('No body.');
});
