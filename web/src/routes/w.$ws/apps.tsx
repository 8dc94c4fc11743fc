import { Button } from '@mantine/core';
import { IconPlugConnected } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { appsQuery, type ConnectedApp, useDisconnectApp } from '../../api/people';
import { Ago } from '../../components/ago';
import { Tag } from '../../components/badges';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { cell, Table } from '../../components/table';
import { toastDone, toastFailed } from '../../components/toast';
import { useMay, useSession } from '../../session';
import { formatDate } from '../../time';

export const Route = createFileRoute('/w/$ws/apps')({
  component: AppsPage,
});

/** The host of an app that is known by an address; any app can call itself anything. */
export function origin(app: Pick<ConnectedApp, 'client_id'>): string {
  try {
    const url = new URL(app.client_id);
    if (url.protocol === 'https:') return url.host;
  } catch {
    // An id that we gave.
  }
  return 'Self-registered';
}

function renewals(count: number): string {
  if (count === 0) return 'Never refreshed';
  return count === 1 ? 'Refreshed once' : `Refreshed ${count} times`;
}

function AppsPage() {
  const { me, workspace } = useSession();
  const administers = useMay('administer');
  const apps = useQuery(appsQuery(workspace.slug));
  const disconnect = useDisconnectApp(workspace.slug);
  return (
    <Page
      title="Connected apps"
      lede={
        administers
          ? 'AI apps with access to this workspace, each on behalf of a member.'
          : 'AI apps with access to this workspace on your behalf.'
      }
    >
      <Panel flush>
        <Loaded query={apps} lines={5}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={<IconPlugConnected size={24} />} title="No connected apps">
                An app appears here after a user adds a server to it and allows access.
              </Empty>
            ) : (
              <Table
                label="Connected apps"
                head={
                  <>
                    <th>App</th>
                    <th>User</th>
                    <th>Access</th>
                    <th>Last used</th>
                    <th>
                      <span className="visually-hidden">Actions</span>
                    </th>
                  </>
                }
              >
                {items.map((app) => (
                  <tr key={app.id}>
                    <td data-wide>
                      <span className={cell.main}>{app.name}</span>
                      <div className={cell.sub}>{origin(app)}</div>
                    </td>
                    <td data-wide>
                      {app.user_name || app.user_email} {app.user_id === me.user.id && <Tag>you</Tag>}
                      <div className={cell.sub}>{app.user_email}</div>
                    </td>
                    <td data-wide>
                      <code>{app.resource.replace(window.location.origin, '')}</code>
                      <div className={cell.sub}>
                        connected {formatDate(app.created_at)} · expires {formatDate(app.expires_at)}
                      </div>
                    </td>
                    <td data-label="Last used">
                      {app.last_used_at ? <Ago at={app.last_used_at} /> : 'never'}
                      <div className={cell.sub}>{renewals(app.refreshes)}</div>
                      {app.repeated_elsewhere_at && (
                        <div className={cell.sub}>
                          <Tag tone="warn">renewed from another network</Tag>{' '}
                          <Ago at={app.repeated_elsewhere_at} />
                        </div>
                      )}
                    </td>
                    <td data-align="right">
                      <Button
                        variant="subtle"
                        color="red"
                        size="compact-sm"
                        aria-label={`Disconnect ${app.name} of ${app.user_name || app.user_email}`}
                        loading={disconnect.isPending && disconnect.variables === app.id}
                        onClick={() =>
                          disconnect.mutate(app.id, {
                            onSuccess: () => toastDone(`${app.name} was disconnected.`),
                            onError: toastFailed,
                          })
                        }
                      >
                        Disconnect
                      </Button>
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}
