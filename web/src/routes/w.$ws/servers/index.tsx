import { Alert, Select, Stack } from '@mantine/core';
import { IconAnchor, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, Link } from '@tanstack/react-router';
import { type Server, serversQuery, useChooseDefault } from '../../../api/servers';
import { useRecentlyDeleted } from '../../../api/trash';
import { Ago } from '../../../components/ago';
import { ServerStatus, Tag } from '../../../components/badges';
import { CopyLine } from '../../../components/copy';
import { LinkButton } from '../../../components/link-button';
import { Empty, Loaded, Page, Panel } from '../../../components/page';
import { RecentlyDeleted } from '../../../components/recently-deleted';
import { cell, Table } from '../../../components/table';
import { toastDone } from '../../../components/toast';
import { useMay, useSession } from '../../../session';

export const Route = createFileRoute('/w/$ws/servers/')({
  component: ServersPage,
});

function ServersPage() {
  const { workspace } = useSession();
  const params = { ws: workspace.slug };
  const servers = useQuery(serversQuery(workspace.slug));
  const edits = useMay('edit_registry');
  const deleted = useRecentlyDeleted(workspace.slug, 'server', edits);
  const create = edits && (
    <LinkButton to="/w/$ws/servers/new" params={params} leftSection={<IconPlus size={17} aria-hidden />}>
      New server
    </LinkButton>
  );
  return (
    <Page
      title="Servers"
      help="console#servers"
      lede="A server is a URL that AI clients connect to, with the tools you select for it."
      actions={servers.data && servers.data.items.length > 0 && create}
    >
      <RecentlyDeleted deleted={deleted} />
      <Panel flush>
        <Loaded query={servers}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={<IconAnchor size={24} />} title="No servers yet" actions={create}>
                Select tools and publish them. Then Claude, ChatGPT, Cursor, VS Code and any other MCP client
                can connect.
              </Empty>
            ) : (
              <Table
                label="Servers"
                head={
                  <>
                    <th>Name</th>
                    <th>URL</th>
                    <th>Status</th>
                    <th data-align="right">Tools</th>
                    <th data-align="right">Changed</th>
                  </>
                }
              >
                {items.map((server) => (
                  <tr key={server.id}>
                    <td data-wide>
                      <Link
                        to="/w/$ws/servers/$id"
                        params={{ ...params, id: server.id }}
                        className={`plain ${cell.main}`}
                      >
                        {server.name}
                      </Link>{' '}
                      {server.workspace_url && <Tag>Default server</Tag>}
                      {server.description && (
                        <div className={`${cell.sub} ${cell.clamp}`}>{server.description}</div>
                      )}
                    </td>
                    <td data-wide>
                      <CopyLine text={server.url} label={`URL of ${server.name}`} />
                    </td>
                    <td>
                      <ServerStatus status={server.status} />
                    </td>
                    <td data-align="right" data-label="Tools">
                      {server.tool_count}
                    </td>
                    <td data-align="right" data-shrink>
                      <Ago at={server.updated_at} />
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
      </Panel>
      {servers.data && servers.data.items.length > 0 && <DefaultServer servers={servers.data.items} />}
    </Page>
  );
}

const nowhere = 'none';

/** Where the workspace's own URL leads. */
function DefaultServer({ servers }: { servers: Server[] }) {
  const { workspace } = useSession();
  const administers = useMay('administer');
  const choose = useChooseDefault(workspace.slug);
  const chosen = servers.find((server) => server.workspace_url);
  const shown = choose.isPending ? choose.variables : (chosen?.id ?? null);
  const url = `${window.location.origin}/t/${workspace.slug}/mcp`;

  function change(value: string | null) {
    const id = value === null || value === nowhere ? null : value;
    choose.mutate(id, {
      onSuccess: () =>
        toastDone(id === null ? 'The workspace URL points to no server now.' : 'Default server changed.'),
    });
  }

  return (
    <Panel
      title="Default server"
      note="The workspace URL points to this server. The first published server becomes the default."
    >
      <Stack gap="md" maw={640}>
        <CopyLine text={url} label="the workspace URL" />
        {choose.error && (
          <Alert color="red" data-tone="red" role="alert" title="The default server was not changed">
            {choose.error.message}
          </Alert>
        )}
        {chosen && chosen.status !== 'published' && (
          <Alert color="yellow" data-tone="yellow">
            {chosen.name} is not published. The URL works again after you publish it.
          </Alert>
        )}
        <Select
          label="Default server"
          description="Apps connected to this URL get the tools of the selected server immediately."
          data={[
            { value: nowhere, label: 'No server' },
            ...servers.map((server) => ({ value: server.id, label: server.name })),
          ]}
          value={shown ?? nowhere}
          onChange={change}
          allowDeselect={false}
          disabled={!administers || choose.isPending}
        />
        {!administers && <span>An admin or owner can change this.</span>}
      </Stack>
    </Panel>
  );
}
