import { expect, test } from 'vitest';
import { actionWords, detailWords, nounWords } from '../src/audit-words';

test.each([
  ['grant.created', 'App connected'],
  ['tenant.default_server_changed', 'Default server changed'],
  ['tenant.renamed', 'Workspace renamed'],
  ['service_account.secret_revoked', 'Service account secret revoked'],
  ['something.never_seen', 'Something never seen'],
])('the audit log says %s as "%s"', (code, words) => {
  expect(actionWords(code)).toBe(words);
});

test('the audit log has words for details, and calls a tenant a workspace', () => {
  expect(detailWords({ to: 'harbour', from: null })).toBe('from none to harbour');
  expect(detailWords({ tool_calls: { from: null, to: 50 } })).toBe('tool calls: default → 50');
  expect(detailWords({ name: 'Orders', enabled: true })).toBe('name: Orders · enabled: yes');
  expect(detailWords(null)).toBe('');
  expect(nounWords('tenant')).toBe('workspace');
});
