import { Button } from '@mantine/core';
import type { UseMutationResult, UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Ago } from './ago';
import { Confirm } from './confirm';
import { Empty, Loaded, Panel } from './page';
import { Refused } from './refused';
import type { Shown } from './secret';
import { cell, Table } from './table';
import { toastDone } from './toast';

/** What Portolan issued to a program: an API key or an access token. */
interface Issued {
  id: string;
  name: string;
  hint: string;
  last_used_at?: string | null;
}

/** A dialog that issues one. */
export interface Issuing {
  opened: boolean;
  close: () => void;
  show: (shown: Shown) => void;
}

/** A new one, which is shown once. */
export const bearer = (label: string, name: string, secret: string): Shown => ({
  title: `${label} “${name}”`,
  values: [
    { label, value: secret },
    { label: 'Header', value: `Authorization: Bearer ${secret}` },
  ],
});

/** All that were issued, with what each may do, and their revocation. */
export function IssuedList<One extends Issued>({
  title,
  noun,
  query,
  revoke,
  icon,
  none,
  empty,
  columns,
  consequence,
}: {
  title: string;
  /** One of them, in a sentence: `key`. */
  noun: 'key' | 'token';
  query: UseQueryResult<{ items: One[] }>;
  revoke: UseMutationResult<unknown, Error, string>;
  icon: ReactNode;
  /** That none was issued, and what they are for. */
  none: string;
  empty: string;
  /** Columns between the name and the last use. */
  columns: { head: string; of: (one: One) => ReactNode }[];
  /** The end of the sentence `Programs that use … are refused`. */
  consequence: string;
}) {
  const [ending, setEnding] = useState<One>();
  return (
    <Panel title={title} flush>
      <Refused error={revoke.error} title={`The ${noun} was not revoked`} />
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={icon} title={none}>
              {empty}
            </Empty>
          ) : (
            <Table
              label={title}
              head={
                <>
                  <th>{noun === 'key' ? 'Key' : 'Token'}</th>
                  {columns.map(({ head }) => (
                    <th key={head}>{head}</th>
                  ))}
                  <th>Last used</th>
                  <th>
                    <span className="visually-hidden">Actions</span>
                  </th>
                </>
              }
            >
              {items.map((one) => (
                <tr key={one.id}>
                  <td data-wide>
                    <span className={cell.main}>{one.name}</span>
                    <div className={cell.sub}>
                      <code>{one.hint}…</code>
                    </div>
                  </td>
                  {columns.map(({ head, of }) => (
                    <td key={head} data-wide>
                      {of(one)}
                    </td>
                  ))}
                  <td data-label="Last used">{one.last_used_at ? <Ago at={one.last_used_at} /> : 'never'}</td>
                  <td data-align="right">
                    <Button
                      variant="subtle"
                      color="red"
                      size="compact-sm"
                      aria-label={`Revoke ${one.name}`}
                      onClick={() => setEnding(one)}
                    >
                      Revoke
                    </Button>
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      <Confirm
        title={`Revoke this ${noun}?`}
        word="Revoke"
        opened={ending !== undefined}
        close={() => setEnding(undefined)}
        busy={revoke.isPending}
        act={() => {
          if (!ending) return;
          revoke.mutate(ending.id, {
            onSuccess: () => toastDone(`${ending.name} was revoked.`),
            onSettled: () => setEnding(undefined),
          });
        }}
      >
        {noun === 'key' ? 'Clients' : 'Programs'} that use {ending?.name} are refused {consequence}. This
        can’t be undone.
      </Confirm>
    </Panel>
  );
}
