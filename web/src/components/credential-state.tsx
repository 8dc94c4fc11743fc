import { Alert, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import type { CredentialState, Source } from '../api/sources';
import { useMay } from '../session';
import { formatClock, formatDateTime } from '../time';
import { Ago } from './ago';
import { Status } from './badges';
import { LinkButton } from './link-button';

/** "12:03" today, else with its date. */
export function shortTime(at: string, now = new Date()): string {
  const today = new Date(at).toDateString() === now.toDateString();
  return today ? formatClock(at) : formatDateTime(at);
}

/** Whether the API accepts a credential, as a badge. */
export function CredentialStatus({ state }: { state: CredentialState }) {
  switch (state.state) {
    case 'works':
      return (
        <Status tone="good">
          <span>
            Works · <Ago at={state.at} />
          </span>
        </Status>
      );
    case 'refused':
      return (
        <Status tone="bad">
          <span title={formatDateTime(state.at)}>
            Refused {state.status} at {shortTime(state.at)}
          </span>
        </Status>
      );
    case 'inconclusive':
      return (
        <Status tone="warn">
          <span title={state.reason}>Could not be tested</span>
        </Status>
      );
    case 'never_tried':
      return <Status tone="quiet">Never tried</Status>;
  }
}

/** What opens a source, as a badge: a credential with its state, connected accounts, or nothing. */
export function SourceCredentialStatus({
  source,
}: {
  source: Pick<Source, 'credential' | 'sign_in' | 'security'>;
}) {
  if (source.sign_in) return <Status tone="good">Sign-in</Status>;
  if (source.credential) return <CredentialStatus state={source.credential.state} />;
  const needed = source.security.length > 0;
  return <Status tone={needed ? 'warn' : 'quiet'}>{needed ? 'Missing' : 'None'}</Status>;
}

/** The same as a sentence, and what to do next. */
export function credentialAdvice(state: CredentialState): string {
  switch (state.state) {
    case 'works':
      return 'The API accepts this credential.';
    case 'refused':
      return 'The API refused this credential. Check that it was copied completely and is still valid, then save it again.';
    case 'inconclusive':
      return `The credential is saved but could not be tested. ${state.reason}`;
    case 'never_tried':
      return 'The credential is saved but was never tried. Test it, or run a tool.';
  }
}

/** The result of a test, beside the button that ran it. */
export function TestResult({ state }: { state: CredentialState }) {
  const tone = state.state === 'refused' ? 'red' : state.state === 'works' ? 'sea' : 'yellow';
  return (
    <Alert color={tone} data-tone={tone} variant="light" role="status">
      <CredentialStatus state={state} />
      <div>{credentialAdvice(state)}</div>
    </Alert>
  );
}

/** "The API refused the credential of X (401, 12:03)", with the way to mend it. */
export function RefusedCredential({
  ws,
  refused,
}: {
  ws: string;
  refused: { source_id: string; source_name: string; status: number; at: string };
}) {
  const edits = useMay('edit_registry');
  const title = `The API refused the credential of ${refused.source_name} (${refused.status}, ${shortTime(refused.at)})`;
  let action: ReactNode = <span>A developer, admin or owner can replace it.</span>;
  if (edits) {
    action = (
      <LinkButton
        to="/w/$ws/sources/$id"
        params={{ ws, id: refused.source_id }}
        search={{ tab: 'credential' }}
        variant="default"
        size="compact-sm"
      >
        Replace the credential
      </LinkButton>
    );
  }
  return (
    <Alert color="red" data-tone="red" title={title}>
      <Group justify="space-between">
        <span>Calls fail until the API accepts it.</span>
        {action}
      </Group>
    </Alert>
  );
}

/** The warnings of a page for those of its sources whose credential is refused. */
export function RefusedCredentials({ ws, sources }: { ws: string; sources: Source[] }) {
  return sources.map((source) => {
    const state = source.credential?.state;
    if (source.sign_in || state?.state !== 'refused') return null;
    const refused = {
      source_id: source.id,
      source_name: source.name,
      status: state.status,
      at: state.at,
    };
    return <RefusedCredential key={source.id} ws={ws} refused={refused} />;
  });
}
