import { Button } from '@mantine/core';
import { IconIdBadge2, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  type NewClient,
  type RegisteredClient,
  registeredClientsQuery,
  useAddClientSecret,
  useChangeRegistered,
  useDeleteRegistered,
  useRevokeClientSecret,
} from '../../../api/clients';
import { Status } from '../../../components/badges';
import { ClientSecrets } from '../../../components/client-secrets';
import { Confirm } from '../../../components/confirm';
import { Dialog } from '../../../components/dialog';
import { Empty, Loaded, Panel } from '../../../components/page';
import { Refused } from '../../../components/refused';
import { SecretDialog, type Shown } from '../../../components/secret';
import { SwitchAndDelete } from '../../../components/switch-and-delete';
import { cell, Table } from '../../../components/table';
import { toastDone } from '../../../components/toast';
import { ClientForm } from './-client-form';

const proofs: Record<NewClient['proof'], string> = {
  none: 'None (public)',
  client_secret: 'Client secret',
  private_key_jwt: 'Private key (JWT)',
};

/** Clients that were registered for this workspace by hand. */
export function RegisteredClients({ ws }: { ws: string }) {
  const clients = useQuery(registeredClientsQuery(ws));
  const change = useChangeRegistered(ws);
  const remove = useDeleteRegistered(ws);
  const addSecret = useAddClientSecret(ws);
  const revokeSecret = useRevokeClientSecret(ws);
  const [editing, setEditing] = useState<RegisteredClient | 'new'>();
  const [ending, setEnding] = useState<RegisteredClient>();
  const [shown, setShown] = useState<Shown>();
  // While a client is registered, its dialog stays: the answer holds a secret that is shown only once.
  const [registering, setRegistering] = useState(false);
  const error = change.error ?? remove.error ?? addSecret.error ?? revokeSecret.error;
  const forget = () => {
    for (const one of [change, remove, addSecret, revokeSecret]) one.reset();
  };
  return (
    <Panel
      title="Registered clients"
      note="OAuth clients with a fixed client ID, for this workspace only."
      aside={
        <Button
          size="compact-md"
          variant="default"
          leftSection={<IconPlus size={16} />}
          onClick={() => setEditing('new')}
        >
          Register a client
        </Button>
      }
      flush
    >
      <Refused error={error} title="Nothing was changed" />
      <Loaded query={clients}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconIdBadge2 size={24} />} title="No registered clients">
              Most AI clients don’t need one: they register themselves.
            </Empty>
          ) : (
            <Table
              label="Registered clients"
              head={
                <>
                  <th>Client</th>
                  <th>Redirect URIs</th>
                  <th>Client authentication</th>
                  <th>Connections</th>
                  <th>
                    <span className="visually-hidden">Actions</span>
                  </th>
                </>
              }
            >
              {items.map((client) => (
                <tr key={client.id}>
                  <td data-wide>
                    <span className={cell.main}>{client.name}</span>{' '}
                    {!client.enabled && <Status tone="warn">Disabled</Status>}
                    {client.stopped && <Status tone="bad">Blocked by the operator</Status>}
                    <div className={cell.sub}>
                      <code className={cell.id}>{client.client_id}</code>
                    </div>
                  </td>
                  <td data-wide>
                    {client.redirect_uris.map((uri) => (
                      <div key={uri} className={cell.clamp}>
                        <code>{uri}</code>
                      </div>
                    ))}
                  </td>
                  <td data-wide>
                    {proofs[client.proof]}
                    {client.proof === 'private_key_jwt' && (
                      <div className={cell.sub}>{client.jwks_uri ?? 'public keys stored here'}</div>
                    )}
                    {client.proof === 'client_secret' && (
                      <ClientSecrets
                        owner={client}
                        add={addSecret}
                        revoke={revokeSecret}
                        start={forget}
                        show={setShown}
                      >
                        . Connections continue if the client has another secret.
                      </ClientSecrets>
                    )}
                  </td>
                  <td data-label="Connections">{client.apps}</td>
                  <td data-align="right">
                    <SwitchAndDelete
                      name={client.name}
                      enabled={client.enabled}
                      busy={change.isPending && change.variables.id === client.id}
                      turn={(enabled, options) => {
                        forget();
                        change.mutate({ id: client.id, enabled }, options);
                      }}
                      remove={() => setEnding(client)}
                    >
                      <Button
                        variant="subtle"
                        size="compact-sm"
                        aria-label={`Edit ${client.name}`}
                        onClick={() => setEditing(client)}
                      >
                        Edit
                      </Button>
                    </SwitchAndDelete>
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      <Dialog
        kept={registering}
        opened={editing !== undefined}
        onClose={() => setEditing(undefined)}
        title={editing === undefined || editing === 'new' ? 'Register a client' : `Edit ${editing.name}`}
      >
        <ClientForm
          ws={ws}
          client={editing === 'new' ? undefined : editing}
          close={() => setEditing(undefined)}
          show={setShown}
          busy={setRegistering}
        />
      </Dialog>
      <SecretDialog shown={shown} close={() => setShown(undefined)} />
      <Confirm
        title="Delete this client?"
        word="Delete"
        opened={ending !== undefined}
        close={() => setEnding(undefined)}
        busy={remove.isPending}
        act={() => {
          if (!ending) return;
          forget();
          remove.mutate(ending.id, {
            onSuccess: () => toastDone(`${ending.name} was deleted.`),
            onSettled: () => setEnding(undefined),
          });
        }}
      >
        {ending?.name} and its secrets are deleted, and its connections end within a second. This can’t be
        undone. To keep it, disable it instead.
      </Confirm>
    </Panel>
  );
}
