import { isObject } from './json-schema';

/** Texts of the audit log's entries, by the code of the action. */
const actions: Record<string, string> = {
  'access_token.created': 'Access token created',
  'access_token.issued': 'Access token issued',
  'access_token.revoked': 'Access token revoked',
  'api_key.created': 'API key created',
  'api_key.revoked': 'API key revoked',
  'call.revealed': 'Content of a call revealed',
  'call_view.changed': 'Saved view changed',
  'call_view.created': 'View saved',
  'call_view.deleted': 'Saved view deleted',
  'client.allowed': 'AI client allowed',
  'client.blocked': 'AI client blocked',
  'client.decision_withdrawn': 'Default policy applied to an AI client',
  'client.document_changed': 'Metadata of an AI client changed',
  'client.request_dismissed': 'Requests for an AI client dismissed',
  'client.requested': 'AI client requested',
  'client.unblocked': 'AI client unblocked',
  'client_rule.changed': 'Client policy changed',
  'configuration.applied': 'Configuration applied',
  'credential.deleted': 'Credential removed',
  'credential.set': 'Credential set',
  'domain.added': 'Domain added',
  'domain.lost': 'Domain no longer verified',
  'domain.removed': 'Domain removed',
  'domain.verified': 'Domain verified',
  'grant.created': 'App connected',
  'grant.ended': 'Connection ended',
  'grant.refused': 'Access denied on the consent page',
  'grant.revocation_refused': 'Disconnecting an app refused',
  'grant.revoked': 'App disconnected',
  'invitation.revoked': 'Invitation revoked',
  'invitation.sent': 'Invitation sent',
  'limits.changed': 'Limits changed',
  'member.joined': 'Member joined',
  'member.joined_by_sso': 'Member joined by single sign-on',
  'member.left': 'Member left',
  'member.removed': 'Member removed',
  'member.role_changed': 'Role changed',
  'saved_call.changed': 'Saved call changed',
  'saved_call.created': 'Call saved',
  'saved_call.deleted': 'Saved call deleted',
  'server.capture_changed': 'Capture policy of a server changed',
  'server.captured_content_deleted': 'Captured content of a server deleted',
  'server.prompts_chosen': 'Prompts of a server changed',
  'server.resources_chosen': 'Resources of a server changed',
  'server.tools_chosen': 'Tools of a server changed',
  'service_account.api_access_given': 'Management API access given to a service account',
  'service_account.api_access_taken': 'Management API access of a service account removed',
  'session.ended': 'Session ended',
  'source.reimported': 'Source imported again',
  'source.synced': 'Source synced',
  'sso.enforcement': 'Single sign-on requirement changed',
  'sso.ended': 'Sign-in by single sign-on ended',
  'sso.turned_off': 'Identity provider turned off by an operator',
  'sso.provider_removed': 'Identity provider removed',
  'sso.provider_set': 'Identity provider set',
  'tenant.default_server_changed': 'Default server changed',
  'tenant.deletion_began': 'Workspace deleted',
  'tenant.http_sse_changed': 'Legacy HTTP+SSE transport changed',
  'tenant.second_factor_rule': 'Sign-in requirement changed',
  'tenant.workspace_tokens_changed': 'Workspace-wide tokens changed',
  'tool.redefined': 'Request of a tool changed',
  'tools.switched': 'Tools enabled or disabled',
  'trusted_pipeline.changed': 'Trusted pipeline changed',
  'trusted_pipeline.created': 'Pipeline trusted',
  'trusted_pipeline.deleted': 'Trusted pipeline deleted',
  'upstream.connected': 'Account of a source connected',
  'upstream.disconnected': 'Account of a source disconnected',
  'upstream.sign_in_removed': 'Sign-in of a source removed',
  'upstream.sign_in_set': 'Sign-in of a source set',
};

/** The nouns of the API that the console calls otherwise. */
const nouns: Record<string, string> = {
  tenant: 'workspace',
  grant: 'app connection',
  api_key: 'API key',
  client_rule: 'client policy',
  sso: 'single sign-on',
};

export const nounWords = (code: string) => nouns[code] ?? code.replaceAll('_', ' ');

/** "tenant.renamed" → "Workspace renamed"; a code that is not known yet is read as its words. */
export function actionWords(code: string): string {
  const known = actions[code];
  if (known) return known;
  const [noun = '', ...rest] = code.split('.');
  const text = `${nounWords(noun)} ${rest.join(' ').replaceAll('_', ' ')}`.trim();
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

function valueWords(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map(valueWords).join(', ');
  if (isObject(value)) {
    // Of a limit both ends are numbers, and null is the platform's default.
    if (Object.keys(value).sort().join() === 'from,to') {
      return `${value.from ?? 'default'} → ${value.to ?? 'default'}`;
    }
    return Object.entries(value)
      .map(([name, inner]) => `${name.replaceAll('_', ' ')} ${valueWords(inner)}`)
      .join(', ');
  }
  return String(value);
}

/** "from none to harbour", "name: Orders · tools: 4", for a detail that is an object; anything else as it is. */
export function detailWords(detail: unknown): string {
  if (detail === null || detail === undefined) return '';
  if (!isObject(detail)) return valueWords(detail);
  const { from, to, ...others } = detail;
  const parts = Object.entries(others).map(
    ([name, value]) => `${name.replaceAll('_', ' ')}: ${valueWords(value)}`,
  );
  if ('from' in detail || 'to' in detail) parts.unshift(`from ${valueWords(from)} to ${valueWords(to)}`);
  return parts.join(' · ');
}
