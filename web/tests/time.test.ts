import { expect, test } from 'vitest';
import { formatAgo, formatDuration } from '../src/time';

const now = Date.parse('2026-11-21T12:00:00Z');

test.each([
  ['2026-11-21T11:59:40Z', 'just now'],
  ['2026-11-21T11:57:00Z', '3 minutes ago'],
  ['2026-11-21T09:00:00Z', '3 hours ago'],
  ['2026-11-20T12:00:00Z', 'yesterday'],
])('%s is read as "%s"', (at, words) => {
  expect(formatAgo(at, now)).toBe(words);
});

test('durations change their unit at a second', () => {
  expect([formatDuration(84), formatDuration(1234), formatDuration(12_345)]).toEqual([
    '84 ms',
    '1.23 s',
    '12.3 s',
  ]);
});
