import { Button, Group, Stack } from '@mantine/core';
import type { UseMutationResult } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { formatDate } from '../time';
import { Confirm } from './confirm';
import type { Shown } from './secret';
import { cell } from './table';
import { toastDone } from './toast';

interface Secret {
  id: string;
  hint: string;
  last_used_at?: string;
}

/** The secrets of a client. It has up to two, so that one can be replaced without a pause. */
export function ClientSecrets({
  owner,
  add,
  revoke,
  start,
  show,
  children,
}: {
  owner: { id: string; name: string; secrets: Secret[] };
  add: UseMutationResult<{ client_secret: string }, Error, string>;
  revoke: UseMutationResult<unknown, Error, { id: string; secret: string }>;
  /** Removes the refusal of an earlier change. */
  start: () => void;
  show: (shown: Shown) => void;
  /** The effects of a revocation, after “the secret … stops working”. */
  children: ReactNode;
}) {
  const [ending, setEnding] = useState<Secret>();
  return (
    <Stack gap={2} align="flex-start">
      {owner.secrets.map((secret) => (
        <Group key={secret.id} gap="xs">
          <code>{secret.hint}…</code>
          <span className={cell.sub}>
            {secret.last_used_at ? `used ${formatDate(secret.last_used_at)}` : 'not used yet'}
          </span>
          <Button
            variant="subtle"
            color="red"
            size="compact-xs"
            aria-label={`Revoke the secret ${secret.hint} of ${owner.name}`}
            onClick={() => setEnding(secret)}
          >
            Revoke
          </Button>
        </Group>
      ))}
      {owner.secrets.length < 2 && (
        <Button
          variant="subtle"
          size="compact-xs"
          aria-label={`Rotate secret of ${owner.name}`}
          loading={add.isPending && add.variables === owner.id}
          onClick={() => {
            start();
            add.mutate(owner.id, {
              onSuccess: ({ client_secret }) =>
                show({
                  title: `New secret of ${owner.name}`,
                  values: [{ label: 'Client secret', value: client_secret }],
                  note: 'Both secrets work until you revoke the old one.',
                }),
            });
          }}
        >
          Rotate secret
        </Button>
      )}
      <Confirm
        title="Revoke this secret?"
        word="Revoke"
        opened={ending !== undefined}
        close={() => setEnding(undefined)}
        busy={revoke.isPending}
        act={() => {
          if (!ending) return;
          start();
          revoke.mutate(
            { id: owner.id, secret: ending.id },
            {
              onSuccess: () => toastDone('The secret was revoked.'),
              onSettled: () => setEnding(undefined),
            },
          );
        }}
      >
        The secret {ending?.hint}… of {owner.name} stops working{children}
      </Confirm>
    </Stack>
  );
}
